import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.avro import AvroSchema, parse
from schemas.canonical import content_key
from schemas.changes import Kind, changes
from tests.unit.schemas.strategies import schema_values, schemas


def record(*fields: dict[str, Any], **more: Any) -> AvroSchema:
    """A record `R` with these fields."""
    return parse(json.dumps({"type": "record", "name": "R", "fields": list(fields), **more}))


def field(of: Any, **more: Any) -> AvroSchema:
    """A record with one field `f`."""
    return record({"name": "f", "type": of, **more})


def described(old: AvroSchema, new: AvroSchema) -> list[tuple[str, str, str]]:
    """Kind, path and text of each change."""
    return [(one.kind.value, one.path, one.message) for one in changes(old, new)]


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": "string", "default": "x"}
MOMENT = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            record(A),
            record(A, B),
            ("field-added", "/fields/b", 'field b (string) was added with the default "x"'),
        ),
        (
            record(A),
            record(A, {"name": "c", "type": ["null", "long"]}),
            (
                "field-added",
                "/fields/c",
                "field c (union of null and long) was added without a default",
            ),
        ),
        (record(A, B), record(B), ("field-removed", "/fields/a", "field a (int) was removed")),
        (
            record(A, B),
            record(B, A),
            ("fields-moved", "/fields", "fields are in another order: b, a"),
        ),
        (
            field("int"),
            field("long"),
            ("type-widened", "/fields/f/type", "widened from int to long"),
        ),
        (
            field("double"),
            field("float"),
            ("type-narrowed", "/fields/f/type", "narrowed from double to float"),
        ),
        (field("int"), field("string"), ("type-changed", "/fields/f/type", "int became string")),
        (
            field("int", default=1),
            field("int", default=2),
            ("default-changed", "/fields/f", "the default was 1, is 2"),
        ),
        (
            field("int"),
            field("int", default=2),
            ("default-added", "/fields/f", "the default 2 was added"),
        ),
        (
            field("int", default=2),
            field("int"),
            ("default-removed", "/fields/f", "the default 2 was removed"),
        ),
        (
            field("int", doc="a"),
            field("int", doc="b"),
            ("doc-changed", "/fields/f", 'the documentation was "a", now "b"'),
        ),
        (
            field("int"),
            field("int", order="ignore"),
            ("order-changed", "/fields/f", 'the order of sorting was added: "ignore"'),
        ),
        (
            field("int"),
            field("int", unit="km"),
            ("attribute-changed", "/fields/f", 'the attribute unit was added: "km"'),
        ),
        (
            field(MOMENT),
            field(MICROS),
            (
                "logical-type-changed",
                "/fields/f/type",
                "long (timestamp-millis) became long (timestamp-micros)",
            ),
        ),
        (
            field(COLOUR),
            field({**COLOUR, "symbols": ["RED", "BLUE", "GREEN"]}),
            ("symbol-added", "/fields/f/type", "the symbol GREEN was added"),
        ),
        (
            field(COLOUR),
            field({**COLOUR, "symbols": ["RED"]}),
            ("symbol-removed", "/fields/f/type", "the symbol BLUE was removed"),
        ),
        (
            field(COLOUR),
            field({**COLOUR, "symbols": ["BLUE", "RED"]}),
            ("symbols-moved", "/fields/f/type", "symbols are in another order: BLUE, RED"),
        ),
        (
            field("string"),
            field(["null", "string"]),
            (
                "branch-added",
                "/fields/f/type",
                "the branch null was added: string became union of null and string",
            ),
        ),
        (
            field(["null", "string", "int"]),
            field(["null", "int"]),
            (
                "branch-removed",
                "/fields/f/type",
                (
                    "the branch string was removed: "
                    "union of null and string and int became union of null and int"
                ),
            ),
        ),
        (
            field(["null", "int"]),
            field(["null", "long"]),
            ("type-widened", "/fields/f/type/1", "widened from int to long"),
        ),
        (
            field({"type": "array", "items": "int"}),
            field({"type": "array", "items": "long"}),
            ("type-widened", "/fields/f/type/items", "widened from int to long"),
        ),
        (
            field({"type": "map", "values": "long"}),
            field({"type": "map", "values": "int"}),
            ("type-narrowed", "/fields/f/type/values", "narrowed from long to int"),
        ),
        (
            field({"type": "fixed", "name": "F", "size": 4}),
            field({"type": "fixed", "name": "F", "size": 8}),
            ("size-changed", "/fields/f/type", "size was 4 bytes, is 8"),
        ),
    ],
)
def test_each_kind_of_change_is_described_with_its_path(
    old: AvroSchema, new: AvroSchema, expected: tuple[str, str, str]
) -> None:
    """One change, one sentence."""
    assert described(old, new) == [expected]


def test_a_field_with_its_old_name_as_an_alias_was_renamed() -> None:
    """The name is one change; the alias is another."""
    renamed = record({"name": "n", "type": "int", "aliases": ["a"]})
    assert described(record(A), renamed) == [
        ("field-renamed", "/fields/n", "field a was renamed to n, which it has as an alias"),
        ("aliases-changed", "/fields/n", 'the aliases were added: ["a"]'),
    ]
    without = record({"name": "n", "type": "int"})
    assert [one.kind for one in changes(record(A), without)] == [
        Kind.FIELD_ADDED,
        Kind.FIELD_REMOVED,
    ]


def test_a_named_type_is_compared_once() -> None:
    """At its first place, however often it is referred to, also by itself."""
    node = {
        "type": "record",
        "name": "N",
        "fields": [A, {"name": "next", "type": ["null", "N"]}],
    }
    wider = copy.deepcopy(node)
    wider["fields"][0]["type"] = "long"  # type: ignore[index] # of the copy
    again = {"name": "again", "type": "N"}
    assert described(
        record({"name": "f", "type": node}, again), record({"name": "f", "type": wider}, again)
    ) == [("type-widened", "/fields/f/type/fields/a/type", "widened from int to long")]


def test_notation_is_no_change() -> None:
    """Namespaces, the order of keys and unnecessary braces."""
    one = parse('{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"int"}}]}')
    other = parse(
        '{"name":"R","namespace":"a","fields":[{"type":"int","name":"x"}],"type":"record"}'
    )
    assert changes(one, other) == ()


@given(schemas(), schemas())
def test_there_are_changes_exactly_where_contents_differ(old: AvroSchema, new: AvroSchema) -> None:
    """None is missing, and none is reported of equal ones."""
    assert changes(old, old) == ()
    assert bool(changes(old, new)) == (content_key(old) != content_key(new))


@st.composite
def steps(draw: st.DrawFn) -> tuple[AvroSchema, AvroSchema]:
    """A record, and one that differs from it in one or two places."""
    value = draw(schema_values().filter(lambda one: isinstance(one, dict) and one.get("fields")))
    new = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 2))):
        one = draw(st.sampled_from(new["fields"])) if new["fields"] else {}
        match draw(st.sampled_from(["add", "remove", "doc", "move", "type", "alias"])):
            case "add":
                new["fields"].append(
                    {"name": f"n{len(new['fields'])}", "type": "int", "default": 1}
                )
            case "remove" if one:
                new["fields"].remove(one)
            case "doc" if one:
                one["doc"] = draw(st.text(max_size=3))
            case "move":
                new["fields"] = draw(st.permutations(new["fields"]))
            case "type" if one:
                one["type"] = draw(st.sampled_from(["int", "long", ["null", "int"]]))
            case "alias":
                new["aliases"] = ["Before"]
    return parse(json.dumps(value)), parse(json.dumps(new))


@given(steps())
def test_small_changes_are_found(step: tuple[AvroSchema, AvroSchema]) -> None:
    """Exactly if there are any, and in both directions."""
    old, new = step
    differ = content_key(old) != content_key(new)
    assert bool(changes(old, new)) == differ
    assert bool(changes(new, old)) == differ
