import json

import pytest
from hypothesis import given

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.inlining import inlined
from schemas.nesting import MAX_DEPTH
from schemas.registry.java_text import canonical_text
from schemas.types import INT_MAX, Kind, Logical, Primitive, RecordType, Reference, UnionType
from tests.unit.schemas.strategies import schema_values

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
def test_errors_are_named_with_their_path(text: str, place: str, message: str) -> None:
    """An invalid schema raises, with the error and its place."""
    with pytest.raises(SchemaError) as caught:
        parse(text)
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_duplicate_field_is_named() -> None:
    """Two fields of one name are an error at the second."""
    field = {"name": "a", "type": "int"}
    text = json.dumps({"type": "record", "name": "R", "fields": [field, field]})
    with pytest.raises(SchemaError, match=r"^/fields/a: R has two fields of this name"):
        parse(text)


INNER: dict[str, object] = {
    "type": "record",
    "name": "n.I",
    "fields": [{"name": "a", "type": {"type": "array", "items": "double"}, "default": [1]}],
}
FIELD: dict[str, object] = INNER["fields"][0]  # type: ignore[index]
ENUM: dict[str, object] = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED: dict[str, object] = {"type": "fixed", "name": "F", "size": 4}
TWICE: list[tuple[dict[str, object], dict[str, object], bool]] = [
    (INNER, {**INNER, "name": "I", "namespace": "n"}, True),
    (INNER, {**INNER, "doc": "d", "aliases": ["J"]}, True),
    (INNER, {**INNER, "type": "error"}, True),
    (INNER, {**INNER, "fields": [{**FIELD, "doc": "d", "order": "Ascending"}]}, True),
    (INNER, {**INNER, "fields": [{**FIELD, "aliases": ["b"]}]}, True),
    (INNER, {**INNER, "fields": [{**FIELD, "order": "ignore"}]}, False),
    (INNER, {**INNER, "fields": [{**FIELD, "default": [1.0]}]}, False),
    (INNER, {**INNER, "fields": [{**FIELD, "p": 1}]}, False),
    (INNER, {**INNER, "fields": [{**FIELD, "type": {**FIELD["type"], "p": 1}}]}, False),  # type: ignore[dict-item]
    (INNER, {**INNER, "p": 1}, False),
    ({**INNER, "p": 1, "q": 2}, {"q": 2, "p": 1, **INNER}, True),
    (INNER, {**INNER, "fields": []}, False),
    (INNER, {**FIXED, "name": "n.I"}, False),
    (ENUM, {**ENUM, "doc": "d", "default": "A"}, True),
    (ENUM, {**ENUM, "symbols": ["B", "A"]}, False),
    (FIXED, FIXED, True),
    (FIXED, {**FIXED, "logicalType": "decimal", "precision": 4}, False),
]


@pytest.mark.parametrize(("first", "second", "same"), TWICE)
def test_a_type_may_be_defined_twice_if_both_are_equal(
    first: dict[str, object],
    second: dict[str, object],
    same: bool,  # noqa: FBT001 - of the table
) -> None:
    """As in Java: the second is read as the name."""
    fields = [{"name": "x", "type": first}, {"name": "y", "type": ["null", second]}]
    text = json.dumps({"type": "record", "name": "T", "fields": fields})
    alone = json.dumps({"type": "record", "name": "T", "fields": fields[1:]})
    if not same:
        for again, used in ((text, ()), (alone, (parse(json.dumps(first)),))):
            with pytest.raises(SchemaError, match="is defined twice, in different ways"):
                parse(again, used)
        return
    schema = parse(text)
    assert schema.value["fields"] == [fields[0], {"name": "y", "type": ["null", first["name"]]}]
    assert schema == parse(schema.text)
    behind = parse(alone, (parse(json.dumps(first)),))
    assert behind.value["fields"] == [{"name": "y", "type": ["null", first["name"]]}]


def test_a_type_is_not_defined_inside_itself() -> None:
    """And not twice in a union."""
    inside = {**RECORD, "fields": [{"name": "r", "type": RECORD}]}
    with pytest.raises(SchemaError, match="R is defined inside itself"):
        parse(json.dumps(inside))
    with pytest.raises(SchemaError, match="R stands twice in the union"):
        parse(json.dumps([RECORD, RECORD]))


def _holding(name: str, *types: object) -> dict[str, object]:
    fields = [{"name": f"f{number}", "type": one} for number, one in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields}


@pytest.mark.parametrize(
    "types",
    [
        [_holding("a.X", ["null", "X"])],
        [_holding("a.X", ["null", "a.X"])],
    ],
)
def test_an_ambiguous_name_is_refused(types: list[object]) -> None:
    """Inside the record a.X the name X is a.X for some, and for Java a finished X."""
    outer = _holding("X", "int")
    with pytest.raises(SchemaError, match=r"mean both a\.X and X"):
        parse(json.dumps(_holding("T", outer, *types)))
    assert parse(json.dumps(_holding("T", *types))).names.keys() == {"a.X", "T"}


def test_a_name_that_java_expects_to_be_defined_yet_is_refused() -> None:
    """Inside a namespace the name of an unfinished record without one, that is defined later."""
    inner = _holding("a.I", "X")
    assert parse(json.dumps(_holding("X", inner))).names.keys() == {"a.I", "X"}
    with pytest.raises(SchemaError, match=r"mean both a\.X and X"):
        parse(json.dumps(_holding("X", inner, _holding("a.X", "int"))))


@pytest.mark.parametrize("count", [31, 32])
def test_the_depth_includes_referenced_schemas(count: int) -> None:
    """Inlined they would be as deep."""
    used: list[AvroSchema] = []
    for number in range(count):
        inner = ["null", f"R{number - 1}"] if number else "int"
        used.append(parse(json.dumps(_holding(f"R{number}", inner)), tuple(used)))
    text = json.dumps(_holding("T", ["null", f"R{count - 1}"]))
    if count == 31:
        assert parse(canonical_text(inlined(parse(text, tuple(used))))).full_name == "T"
        return
    with pytest.raises(SchemaError, match="more than 64 deep, with those of the schemas used"):
        parse(text, tuple(used))


def test_values_in_attributes_and_defaults_are_bounded() -> None:
    """Every walk through them ends."""

    def nested(depth: int) -> str:
        return '{"n":' * depth + "null" + "}" * depth

    def texts(depth: int) -> tuple[str, ...]:
        inner = '{"type":"record","name":"L","fields":[{"name":"n","type":["null","L"]}]}'
        start = '{"type":"record","name":"W","fields":'
        return (
            f'{start}[{{"name":"v","type":{inner},"default":{nested(depth)}}}]}}',
            f'{start}[],"p":{nested(depth)}}}',
            f'{start}[{{"name":"v","type":"int","p":{nested(depth)}}}]}}',
        )

    for text in texts(MAX_DEPTH):
        assert parse(text).full_name == "W"
    for depth in (MAX_DEPTH + 1, 240):
        for text in texts(depth):
            with pytest.raises(SchemaError, match="the value is nested more than 64 deep"):
                parse(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_deep_nesting_is_refused_without_a_crash(depth: int) -> None:
    """A text that would exhaust the stack is an error like any other."""
    with pytest.raises(SchemaError):
        parse('{"type":"array","items":' * depth + '"int"' + "}" * depth)


def test_names_are_resolved_by_namespaces() -> None:
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


def test_full_name_of_a_plain_type_is_its_keyword() -> None:
    """Types without a name are identified by their keyword."""
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
        {"type": "bytes", "logicalType": "decimal", "precision": INT_MAX + 1},
    ],
)
def test_invalid_logical_types_are_ignored(value: dict[str, object]) -> None:
    """The underlying type is used, as the specification requires."""
    root = parse(json.dumps(value)).root
    assert getattr(root, "logical", None) is None


def test_decimal_has_its_parameters() -> None:
    """Precision and scale are kept; the default scale is 0."""
    root = parse('{"type":"bytes","logicalType":"decimal","precision":4}').root
    assert root == Primitive(Kind.BYTES, Logical.DECIMAL, 4, 0)


@given(schema_values())
def test_every_valid_schema_parses(value: object) -> None:
    """Parsing returns the same JSON, and parsing its text again the same schema."""
    schema = parse(json.dumps(value))
    assert schema.value == value
    assert parse(schema.text) == schema
