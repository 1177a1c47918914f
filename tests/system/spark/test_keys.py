"""Record keys in formats other than Avro, on real Spark."""

from functools import reduce

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual alias in Spark programs

from pipeline.network.model import KeyFormat
from pipeline.network.types import DataType, Scalar
from pipeline.spark.query.keys import key_sql
from tests.unit.spark.query.test_keys import keyed

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def sql_of(key_format: KeyFormat, data_type: DataType) -> str:
    """SQL that encodes a column of a type as a key."""
    sql = key_sql(keyed(key_format, data_type))
    assert sql is not None
    return sql


def test_keys_equal_those_of_kafkas_serializers(spark: SparkSession) -> None:
    """Strings in UTF-8; integers in two's complement, big-endian."""
    cases: list[tuple[KeyFormat, DataType, str, bytes]] = [
        (KeyFormat.STRING, Scalar.STRING, "'é'", b"\xc3\xa9"),
        (KeyFormat.STRING, Scalar.STRING, "''", b""),
        (KeyFormat.STRING, Scalar.INT, "-12", b"-12"),
        (KeyFormat.STRING, Scalar.LONG, "9223372036854775807L", b"9223372036854775807"),
        (KeyFormat.STRING, Scalar.BOOLEAN, "true", b"true"),
        (KeyFormat.RAW, Scalar.BYTES, "X'00FF'", b"\x00\xff"),
        *(
            (KeyFormat.RAW, kind, f"CAST('{number}' AS {kind})", number.to_bytes(size, signed=True))
            for kind, size in ((Scalar.INT, 4), (Scalar.LONG, 8))
            for number in (0, 1, -1, 256, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)))
        ),
    ]
    written = [
        spark.range(1).select(F.expr(value).alias("a")).select(F.expr(sql_of(form, kind)))
        for form, kind, value, _ in cases
    ]
    found = [bytes(row[0]) for row in reduce(DataFrame.unionAll, written).collect()]
    assert found == [expected for *_, expected in cases]
