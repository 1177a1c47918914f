import json

import pytest

from pipeline.network.boxes.route import BRANCH
from pipeline.network.model import Box, Network
from pipeline.planner.columns import narrowed, pruned, read_columns, reading_boxes
from pipeline.planner.plan import Fragment
from pipeline.planner.planner import plan
from pipeline.spark.query.lower import lower
from schemas.avro import parse
from tests.unit.planner.networks import (
    OWNER,
    column,
    deduplicated,
    expression,
    external,
    filtered,
    joined,
    mapped,
    network,
    routed,
    united,
)
from tests.unit.spark.support import fragment, lowering_context


def _planned(of: Network) -> Fragment:
    (found,) = plan(of, OWNER).fragments
    return found


def test_a_join_reads_compared_and_selected_columns() -> None:
    """Of each side its own; the rest of a row would be buffered without need."""
    notified = fragment("toll_notifications")
    read = {str(stream.name): read_columns(stream, notified) for stream in notified.inputs}
    assert read == {
        "sightings": {"car", "road", "segment", "speed", "at"},
        "tolls": {"road", "segment", "toll"},
    }


def test_both_sides_of_a_join_may_be_one_stream() -> None:
    """The columns of both are decoded."""
    source = external("s", *(column(name) for name in "abcd"))
    pairs = joined("p", source, source, (("a", "b"),), {"c": "`right`.`c`"})
    planned = _planned(network((source,), (pairs,), ("p",)))
    assert read_columns(planned.inputs[0], planned) == {"a", "b", "c", "at"}


FIRST, SECOND = (external(name, *(column(c) for c in "abc")) for name in "st")
TOGETHER = united("u", FIRST, SECOND)
ONCE = deduplicated("d", FIRST, ("b",), 5)
HIGH = filtered("f", FIRST, "`c` > 1")


@pytest.mark.parametrize(
    ("box", "read"),
    [(TOGETHER, {"a"}), (ONCE, {"a", "b"}), (HIGH, {"a", "c"})],
)
def test_a_box_that_passes_rows_on_reads_the_columns_of_its_readers(
    box: Box, read: set[str]
) -> None:
    """Its output has no other columns either."""
    select = mapped("m", box, {"x": "`a` + 1"})
    planned = _planned(network((FIRST, SECOND), (box, select), ("m",)))
    for stream in planned.inputs:
        assert read_columns(stream, planned) == {*read, "at"}
    without = pruned(planned)
    assert [c.name for c in without.boxes[0].columns] == ["a"]
    assert {c.name for c in without.inputs[0].columns} == {*read, "at"}
    assert {f["name"] for f in json.loads(without.inputs[0].schema_json)["fields"]} == {*read, "at"}


@pytest.mark.parametrize("box", [TOGETHER, ONCE, HIGH])
def test_results_have_all_columns(box: Box) -> None:
    """Readers outside of the network read them."""
    planned = _planned(network((FIRST, SECOND), (box,), (str(box.name),)))
    without = pruned(planned)
    assert without.boxes == planned.boxes
    assert [one.columns for one in without.inputs] == [one.columns for one in planned.inputs]


def test_a_route_reads_its_conditions_too() -> None:
    """And a branch the column that names it."""
    route, (left, right) = routed("r", FIRST, {"l": expression("`b` > 1")}, otherwise="o")
    both = united("u", left, right)
    boxes = (route, left, right, both, mapped("m", both, {"x": "`a`"}))
    planned = _planned(network((FIRST,), boxes, ("m",)))
    assert read_columns(planned.inputs[0], planned) == {"a", "b", "at"}
    columns = {box.name: {c.name for c in box.columns} for box in pruned(planned).boxes}
    assert columns == {"r": {"a", BRANCH}, "l": {"a"}, "o": {"a"}, "u": {"a"}, "m": {"x"}}


def test_names_of_united_streams_may_differ_in_case() -> None:
    """SQL compares them without case."""
    other = external("t", *(column(c) for c in "ABC"))
    both = united("u", FIRST, other)
    boxes = (both, mapped("m", both, {"x": "`a`"}))
    planned = _planned(network((FIRST, other), boxes, ("m",)))
    assert read_columns(planned.inputs[1], planned) == {"A", "at"}


def test_unread_columns_are_not_decoded() -> None:
    """Columns of groups, arguments and event time are; the source has no others."""
    windows = fragment("tolls")
    (stream,) = windows.inputs
    names = read_columns(stream, windows)
    assert names == {"road", "segment", "speed", "car", "at"}
    assert {column.name for column in stream.columns} > names
    (source,) = lower(windows, lowering_context(windows)).sources
    assert {column.name for column in source.columns} == names


def test_a_narrowed_schema_keeps_the_order_of_its_fields() -> None:
    """And its other attributes, so that it is still the record's."""
    fields = [{"name": name, "type": "int"} for name in "abc"]
    whole = {"type": "record", "name": "R", "namespace": "n", "fields": fields}
    kept = json.loads(narrowed(json.dumps(whole), frozenset("ca")))
    assert kept == {**whole, "fields": [fields[0], fields[2]]}


def test_a_field_that_defines_a_referenced_type_is_kept() -> None:
    """Also over another one; otherwise the schema could not be parsed."""
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


def test_the_boxes_that_read_a_column_are_named() -> None:
    """By the document's names; columns of event time are read by all of them."""
    dispatch = fragment("tow_dispatch")
    (stream,) = dispatch.inputs
    assert set(reading_boxes(stream, dispatch, "at")) == {"stopped", "tow_trucks"}
    assert reading_boxes(stream, dispatch, None) == reading_boxes(stream, dispatch, "at")
    windows = fragment("tolls")
    (stream,) = windows.inputs
    assert reading_boxes(stream, windows, "location") == (windows.name,)
