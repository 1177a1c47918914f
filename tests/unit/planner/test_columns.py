import json

import pytest

from pipeline.planner.columns import narrowed, read_columns, reading_boxes
from pipeline.spark.lower import lower
from schemas.avro import parse
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


def test_a_field_stays_that_defines_what_a_kept_one_refers_to() -> None:
    """Also over another one; else the schema could not be parsed."""
    level = {"type": "enum", "name": "Level", "symbols": ["LOW"]}
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "level", "type": "Level"}]}
    fields = [
        {"name": "first", "type": ["null", level]},
        {"name": "other", "type": "int"},
        {"name": "second", "type": {"type": "array", "items": inner}},
        {"name": "third", "type": {"type": "map", "values": "n.Inner"}},
    ]
    whole = json.dumps({"type": "record", "name": "R", "namespace": "n", "fields": fields})
    kept = narrowed(whole, frozenset({"third"}))
    assert [field["name"] for field in json.loads(kept)["fields"]] == ["first", "second", "third"]
    assert parse(kept).full_name == "n.R"


def test_the_boxes_are_named_that_read_a_column() -> None:
    """By the document's names; what decides about event time is read by all of them."""
    dispatch = fragment("tow_dispatch")
    (stream,) = dispatch.inputs
    assert set(reading_boxes(stream, dispatch, "at")) == {"stopped", "tow_trucks"}
    assert reading_boxes(stream, dispatch, None) == reading_boxes(stream, dispatch, "at")
    windows = fragment("tolls")
    (stream,) = windows.inputs
    assert reading_boxes(stream, windows, "location") == (windows.name,)
