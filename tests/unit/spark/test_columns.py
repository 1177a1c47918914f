import json

import pytest

from pipeline.spark.columns import read_columns
from pipeline.spark.lower import lower, narrowed
from tests.unit.spark.support import fragment, surroundings


@pytest.mark.parametrize("name", ["tow_dispatch", "toll_notifications"])
def test_a_join_reads_everything(name: str) -> None:
    """A pair that cannot be computed is kept with all its columns."""
    joined = fragment(name)
    for stream in joined.inputs:
        assert read_columns(stream, joined) == {column.name for column in stream.columns}


def test_what_nothing_reads_is_not_decoded() -> None:
    """Columns of groups, arguments and event time are; the source has no others."""
    windows = fragment("tolls")
    (stream,) = windows.inputs
    names = read_columns(stream, windows)
    assert names == {"road", "segment", "speed", "car", "at"}
    assert {column.name for column in stream.columns} > names
    (source,) = lower(windows, surroundings(windows)).sources
    assert {column.name for column in source.columns} == names


def test_a_narrowed_schema_keeps_the_order_of_its_fields() -> None:
    """And everything else about it, so that it is still the record's."""
    fields = [{"name": name, "type": "int"} for name in "abc"]
    whole = {"type": "record", "name": "R", "namespace": "n", "fields": fields}
    kept = json.loads(narrowed(json.dumps(whole), frozenset("ca")))
    assert kept == {**whole, "fields": [fields[0], fields[2]]}
