import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.inlining import inlined
from schemas.registry.java_text import canonical_text, normal_text
from schemas.types import (
    ArrayType,
    AvroType,
    EnumType,
    MapType,
    RecordType,
    UnionType,
)
from tests.unit.schemas.strategies import schemas


def record(name: str, **fields: object) -> str:
    """The text of a record."""
    named = [{"name": field, "type": kind} for field, kind in fields.items()]
    return json.dumps({"type": "record", "name": name, "fields": named})


def whole(text: str, *used: AvroSchema) -> AvroSchema:
    """An inlined schema, as it is read alone."""
    return parse(canonical_text(inlined(parse(text, used))))


def test_a_schema_is_inlined_with_its_references() -> None:
    """Each type once, at its first place, under its full name."""
    low = parse('{"type":"fixed","name":"x.F","size":2}')
    mid = parse(
        '{"type":"record","name":"M","namespace":"x","fields":[{"name":"f","type":"F"}]}', (low,)
    )
    top = parse(
        '{"type":"record","name":"T","namespace":"y","fields":['
        '{"name":"m","type":["null","x.M"]},{"name":"f","type":{"type":"array","items":"x.F"}},'
        '{"name":"n","type":{"type":"map","values":{"type":"x.M"}}},{"name":"i","type":{"type":"int"}}]}',
        (low, mid),
    )
    assert json.loads(canonical_text(inlined(top))) == {
        "type": "record",
        "name": "T",
        "namespace": "y",
        "fields": [
            {
                "name": "m",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "M",
                        "namespace": "x",
                        "fields": [
                            {"name": "f", "type": {"type": "fixed", "name": "F", "size": 2}}
                        ],
                    },
                ],
            },
            {"name": "f", "type": {"type": "array", "items": "x.F"}},
            {"name": "n", "type": {"type": "map", "values": "x.M"}},
            {"name": "i", "type": "int"},
        ],
    }


def test_a_type_without_a_namespace_stays_without_one() -> None:
    """Inside another's namespace it would otherwise become part of that."""
    low = parse('{"type":"record","name":"L","fields":[{"name":"k","type":["null","L"]}]}')
    top = parse(
        '{"type":"record","name":"y.T","fields":[{"name":"l","type":"L"},{"name":"m","type":"L"}]}',
        (low,),
    )
    whole = canonical_text(inlined(top))
    assert parse(whole).names.keys() == {"L", "y.T"}


def test_a_type_inside_another_schema_is_extracted_from_it() -> None:
    """Also where it is used before the schema that defines it, which then only names it."""
    inner = json.loads(record("Inner", n="int"))
    outer = parse(record("x.Outer", a={"type": "array", "items": ["null", inner]}))
    found = whole(record("y.T", first="x.Inner", second="x.Outer"), outer)
    assert found.value["fields"] == [
        {"name": "first", "type": {**inner, "namespace": "x"}},
        {
            "name": "second",
            "type": {
                "type": "record",
                "name": "Outer",
                "namespace": "x",
                "fields": [{"name": "a", "type": {"type": "array", "items": ["null", "Inner"]}}],
            },
        },
    ]


def test_a_schema_may_be_only_a_reference() -> None:
    """A name alone, a union, or an array of it; and a union that is referred to has no name."""
    part = parse(record("x.Part", n="int"))
    written = {"type": "record", "name": "Part", "namespace": "x"}
    fields = {"fields": [{"name": "n", "type": "int"}]}
    assert whole('"x.Part"', part).value == {**written, **fields}
    assert whole('["null","x.Part"]', part).value == ["null", {**written, **fields}]
    both = parse(f"[{record('x.A', n='int')},{record('x.B', n='int')}]")
    assert whole('{"type":"map","values":"x.B"}', both).names.keys() == {"x.B"}


def test_one_type_through_two_others_is_written_once() -> None:
    """As Java Avro requires: a type is defined once."""
    low = parse(record("x.Low", n="int"))
    left, right = parse(record("x.L", low="Low"), (low,)), parse(record("z.R", low="x.Low"), (low,))
    found = whole(record("T", l="x.L", r="z.R", low="x.Low"), low, left, right)
    assert found.text.count('"Low","fields"') + found.text.count('"Low","namespace"') == 1
    assert found.names.keys() == {"x.Low", "x.L", "z.R", "T"}


def test_a_record_that_contains_itself_ends() -> None:
    """Inside of itself it is a name."""
    tree = parse(record("x.Tree", branches={"type": "array", "items": "Tree"}))
    assert whole(record("T", tree="x.Tree", other="x.Tree"), tree).names.keys() == {"x.Tree", "T"}


@given(schemas())
def test_every_inlined_schema_has_equal_semantics(schema: AvroSchema) -> None:
    """Alone, and where another schema only names it and its parts."""
    assert dict(whole(schema.text).names) == dict(schema.names)
    for name in schema.names:
        found = whole(f'{{"type":"array","items":"{name}"}}', schema)
        assert {one: schema.names[one] for one in found.names} == dict(found.names)


ORDER = '{"type":"enum","name":"Order","symbols":["ASC","DESC"]}'


def test_a_name_is_resolved_where_it_was_written() -> None:
    """Not to the type of that name around the place to which it is moved."""
    order = parse(ORDER)
    item = parse(record("shop.Item", sort="Order"), (order,))
    found = whole(record("shop.Order", first="Item"), order, item)
    assert found.value["fields"][0]["type"]["fields"][0]["type"] == {
        **json.loads(ORDER),
        "namespace": "",
    }
    assert isinstance(found.names["Order"], EnumType)
    assert isinstance(found.names["shop.Order"], RecordType)


def test_a_type_that_avro_cannot_name_is_refused() -> None:
    """Inside a namespace that has a type of the name, another one without a namespace."""
    order = parse(ORDER)
    item = parse(record("shop.Item", sort="Order"), (order,))
    own = parse(record("shop.Order", n="int"))
    both = parse(record("shop.T", own="Order", item="Item"), (order, item, own))
    assert whole(both.text, order, item, own).names.keys() == both.names.keys()
    top = record("T", order="Order", own="shop.Order", item="shop.Item")
    with pytest.raises(SchemaError, match=r"mean both shop\.Order and Order"):
        inlined(parse(top, (order, item, own)))


@st.composite
def families(draw: st.DrawFn) -> list[str]:
    """Texts that use those before them, with few names in many namespaces."""
    known: list[str] = []

    def any_type(space: str, depth: int) -> Any:
        kinds = ["scalar", "name", "name", *(["array", "union", "named", "named"] * min(depth, 1))]
        kind = draw(st.sampled_from(kinds))
        if kind == "name" and known:
            full = draw(st.sampled_from(known))
            return draw(st.sampled_from([full, full.rpartition(".")[2], {"type": full}]))
        if kind == "array":
            return {"type": "array", "items": any_type(space, depth - 1)}
        if kind == "union":
            return ["null", any_type(space, depth - 1)]
        return named(space, depth - 1) if kind == "named" else "int"

    def named(space: str, depth: int) -> Any:
        own = draw(st.sampled_from([space, "", "a", "b"]))
        short = draw(st.sampled_from("XYZ"))
        made: dict[str, Any] = {"name": short, "namespace": own}
        known.append(f"{own}.{short}" if own else short)
        if draw(st.booleans()):
            symbols = draw(st.sampled_from([["A"], ["B"]]))
            return {**made, "type": "enum", "symbols": symbols}
        count = draw(st.integers(1, 3))
        fields = [{"name": f"f{n}", "type": any_type(own, depth)} for n in range(count)]
        return {**made, "type": "record", "fields": fields}

    return [json.dumps(named("", 2)) for _ in range(draw(st.integers(2, 4)))]


def shape(schema: AvroSchema, avro_type: AvroType, around: tuple[str, ...] = ()) -> Any:
    """A type with all its parts; a record inside of itself by its name."""
    match schema.resolve(avro_type):
        case RecordType(name, fields=fields):
            if name in around:
                return name
            inner = (*around, name)
            return name, [(field.name, shape(schema, field.type, inner)) for field in fields]
        case ArrayType(items):
            return "array", shape(schema, items, around)
        case MapType(values):
            return "map", shape(schema, values, around)
        case UnionType(branches):
            return [shape(schema, branch, around) for branch in branches]
        case other:
            return other


def written(schema: AvroSchema) -> list[AvroSchema]:
    """A schema inlined in all ways; none where Avro has no name for a type."""
    try:
        value = inlined(schema)
    except SchemaError:
        return []
    return [parse(write(value)) for write in (json.dumps, canonical_text, normal_text)]


@given(families())
def test_one_name_in_many_namespaces_is_the_same_type(texts: list[str]) -> None:
    """Inlined and as a registry stores it, or it is refused."""
    used: list[AvroSchema] = []
    for text in texts:
        try:
            schema = parse(text, tuple(used))
        except SchemaError:
            continue
        expected = shape(schema, schema.root)
        for kept in (canonical_text(schema.value), normal_text(schema.value)):
            again = parse(kept, tuple(used))
            assert shape(again, again.root) == expected
        used.append(schema)
        for alone in written(schema):
            assert shape(alone, alone.root) == expected
