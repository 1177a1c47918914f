import json

import pytest
from hypothesis import given

from pipeline.errors import SchemaError
from schemas.avro import MAX_DEPTH, parse
from schemas.types import Kind, Logical, Primitive, RecordType, Reference, UnionType
from tests.unit.schemas.strategies import calm, schema_values

RECORD = {"type": "record", "name": "R", "fields": []}


def _record(**field: object) -> str:
    return json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", **field}]})


BAD = [
    ("", "/", "not JSON"),
    ("{", "/", "line 1, column 2"),
    ('{"type":"int","type":"long"}', "/", "'type' stands twice"),
    ("[NaN]", "/", "not a JSON number"),
    ("1e999", "/", "not a JSON number"),
    ('"integer"', "/", "unknown type 'integer'"),
    ('"record"', "/", "record needs an object"),
    ("5", "/", "not 5"),
    ("{}", "/", 'without "type"'),
    ('{"type":{"type":"int"}}', "/type", "must be a word"),
    ('{"type":"array"}', "/", 'array without "items"'),
    ('{"type":"map"}', "/", 'map without "values"'),
    ('{"type":"array","items":"x"}', "/items", "unknown type 'x'"),
    ('{"type":"map","values":[["int"]]}', "/values/0", "union directly inside a union"),
    ('["int","int"]', "/1", "int stands twice in the union"),
    ('[{"type":"array","items":"int"},{"type":"array","items":"long"}]', "/1", "array stands"),
    ('{"type":"enum","name":"E"}', "/", 'without "symbols"'),
    ('{"type":"enum","name":"E","symbols":["A","A"]}', "/symbols/1", "stands twice"),
    ('{"type":"enum","name":"E","symbols":["A-B"]}', "/symbols/0", "not a name"),
    ('{"type":"enum","name":"E","symbols":["A"],"default":"B"}', "/default", "not a symbol of E"),
    ('{"type":"fixed","name":"F","size":-1}', "/size", "whole number"),
    ('{"type":"fixed","name":"F","size":true}', "/size", "whole number"),
    ('{"type":"fixed","size":1}', "/", 'fixed without "name"'),
    ('{"type":"fixed","name":"int","size":1}', "/name", "built-in"),
    ('{"type":"fixed","name":"1a","size":1}', "/name", "not a name"),
    ('{"type":"fixed","name":"a..b","size":1}', "/name", "not a name"),
    ('{"type":"fixed","name":"F","size":1,"aliases":["-"]}', "/aliases", "not a name"),
    ('{"type":"record","name":"R"}', "/", 'without "fields"'),
    ('{"type":"record","name":"R","fields":[5]}', "/fields/0", "a field is an object"),
    ('{"type":"record","name":"R","fields":[{"type":"int"}]}', "/fields/0", 'without "name"'),
    (_record(), "/fields/a", 'without "type"'),
    (_record(type="strin"), "/fields/a/type", "types defined before this: R"),
    (_record(type="int", order="up"), "/fields/a/order", "ascending, descending, ignore"),
    (_record(type="int", order=None), "/fields/a/order", "null is not one of"),
    (_record(type="int", default="x"), "/fields/a/default", '"x" is not a default for int'),
    (_record(type="int", default=2**31), "/fields/a/default", "not a default for int"),
    (_record(type="int", default=True), "/fields/a/default", "not a default for int"),
    (_record(type=["null", "int"], default="x"), "/fields/a/default", "any branch"),
    (_record(type="bytes", default="\u0100"), "/fields/a/default", "not a default for bytes"),
    (
        _record(type={"type": "array", "items": "int"}, default=[1, "2"]),
        "/fields/a/default/1",
        "not a default for int",
    ),
    (
        _record(type={"type": "map", "values": "int"}, default={"k": "2"}),
        "/fields/a/default/k",
        "not a default for int",
    ),
    (
        _record(
            type={"type": "record", "name": "S", "fields": [{"name": "b", "type": "int"}]},
            default={},
        ),
        "/fields/a/default",
        "the field b of S is missing",
    ),
    ('{"type":"string","doc":"\\ud800"}', "/", "surrogate"),
]


@pytest.mark.parametrize(("text", "place", "message"), BAD)
def test_mistakes_are_named_with_their_path(text: str, place: str, message: str) -> None:
    """A text that is no schema raises, saying what is wrong and where."""
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_field_twice_is_named() -> None:
    """Two fields of one name are a mistake at the second."""
    field = {"name": "a", "type": "int"}
    text = json.dumps({"type": "record", "name": "R", "fields": [field, field]})
    with pytest.raises(SchemaError, match=r"^/fields/a: R has two fields of this name"):
        parse(text)


def test_a_name_defined_twice_is_a_mistake() -> None:
    """A full name stands for one type."""
    with pytest.raises(SchemaError, match="R is defined twice"):
        parse(json.dumps([RECORD, {"type": "array", "items": RECORD}]))


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_deep_nesting_is_refused_without_a_crash(depth: int) -> None:
    """A text that would exhaust the stack is a mistake like any other."""
    with pytest.raises(SchemaError):
        parse('{"type":"array","items":' * depth + '"int"' + "}" * depth)


def test_names_follow_namespaces() -> None:
    """A name without dots belongs to the namespace around it; references are resolved."""
    schema = parse(
        """{"type":"record","name":"a.b.R","aliases":["Old","x.Older"],"fields":[
            {"name":"e","type":{"type":"enum","name":"E","symbols":["A"]}},
            {"name":"again","type":"E"},
            {"name":"other","type":{"type":"fixed","name":"F","namespace":"c","size":2}},
            {"name":"next","type":["null","R"],"default":null},
            {"name":"full","type":"c.F"}]}"""
    )
    assert schema.full_name == "a.b.R"
    assert sorted(schema.names) == ["a.b.E", "a.b.R", "c.F"]
    assert isinstance(schema.root, RecordType)
    assert schema.root.aliases == ("a.b.Old", "x.Older")
    again, following = schema.root.fields[1].type, schema.root.fields[3].type
    assert again == Reference("a.b.E")
    assert isinstance(following, UnionType)
    assert schema.resolve(following.branches[1]) is schema.root


def test_full_name_of_a_plain_type_is_its_word() -> None:
    """Types without a name are known by their word."""
    assert parse('"string"').full_name == "string"
    assert parse('{"type":"array","items":"int"}').full_name == "array"


def test_text_is_compact_and_keeps_the_order_of_keys() -> None:
    """The text is the author's, without white space."""
    assert parse('{ "name": "F",\n "type": "fixed", "size": 1, "doc": "ä" }').text == (
        '{"name":"F","type":"fixed","size":1,"doc":"ä"}'
    )


@pytest.mark.parametrize(
    "value",
    [
        {"type": "long", "logicalType": "date"},
        {"type": "int", "logicalType": "no-such-type"},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 3},
        {"type": "bytes", "logicalType": "decimal", "precision": 0},
        {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 3},
    ],
)
def test_logical_types_that_do_not_fit_are_ignored(value: dict[str, object]) -> None:
    """The type below is used, as the specification demands."""
    root = parse(json.dumps(value)).root
    assert getattr(root, "logical", None) is None


def test_decimal_has_its_parameters() -> None:
    """Precision and scale are kept; the scale is 0 where it is not given."""
    root = parse('{"type":"bytes","logicalType":"decimal","precision":4}').root
    assert root == Primitive(Kind.BYTES, Logical.DECIMAL, 4, 0)


@calm
@given(schema_values())
def test_every_valid_schema_parses(value: object) -> None:
    """Parsing gives back the same JSON, and parsing its text again the same schema."""
    schema = parse(json.dumps(value))
    assert schema.value == value
    assert parse(schema.text) == schema
