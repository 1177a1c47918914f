"""Keys that are not in Avro."""

from dataclasses import replace

import pytest

from pipeline.network.model import KeyFormat
from pipeline.network.types import DataType, Scalar
from pipeline.planner.plan import DerivedStream
from pipeline.planner.planner import plan
from pipeline.spark.query.keys import key_sql
from tests.unit.planner.networks import OWNER, column, deduplicated, external, network


def keyed(key_format: KeyFormat, data_type: DataType) -> DerivedStream:
    """An output with a key of one column."""
    source = external("s", column("a", data_type, nullable=False))
    box = replace(deduplicated("once", source, ("a",), 5), key=("a",))
    planned = network((source,), (box,), ("once",))
    output = replace(planned.outputs[0], key_format=key_format)
    (fragment,) = plan(replace(planned, outputs=(output,)), OWNER).fragments
    return fragment.output


@pytest.mark.parametrize(
    ("key_format", "data_type", "sql"),
    [
        (KeyFormat.AVRO, Scalar.LONG, None),
        (KeyFormat.STRING, Scalar.LONG, "CAST(CAST(`a` AS STRING) AS BINARY)"),
        (KeyFormat.RAW, Scalar.BYTES, "`a`"),
        (KeyFormat.RAW, Scalar.INT, "unhex(right(lpad(hex(CAST(`a` AS BIGINT)), 16, '0'), 8))"),
        (KeyFormat.RAW, Scalar.LONG, "unhex(right(lpad(hex(CAST(`a` AS BIGINT)), 16, '0'), 16))"),
    ],
)
def test_the_bytes_of_a_key(key_format: KeyFormat, data_type: DataType, sql: str | None) -> None:
    """As Kafka's own serializers write them; tests/system/spark/test_keys.py has Spark do it."""
    assert key_sql(keyed(key_format, data_type)) == sql


def test_a_schema_is_registered_only_for_keys_in_avro() -> None:
    """Other keys have none."""
    assert keyed(KeyFormat.AVRO, Scalar.LONG).key_schema_json is not None
    assert keyed(KeyFormat.RAW, Scalar.LONG).key_schema_json is None
