import json

from hypothesis import given

from schemas.avro import AvroSchema, parse
from schemas.inlining import inlined
from schemas.registry.java_text import canonical_text
from tests.unit.schemas.strategies import calm, schemas


def record(name: str, **fields: object) -> str:
    """The text of a record."""
    named = [{"name": field, "type": kind} for field, kind in fields.items()]
    return json.dumps({"type": "record", "name": name, "fields": named})


def whole(text: str, *used: AvroSchema) -> AvroSchema:
    """A schema written out, as it is read alone."""
    return parse(canonical_text(inlined(parse(text, used).value, used)))


def test_a_schema_is_written_out_with_what_it_uses() -> None:
    """Each type once, where it first stands, under its full name."""
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
    assert json.loads(canonical_text(inlined(top.value, (low, mid)))) == {
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
    """Inside another's namespace it would else become part of that."""
    low = parse('{"type":"record","name":"L","fields":[{"name":"k","type":["null","L"]}]}')
    top = parse(
        '{"type":"record","name":"y.T","fields":[{"name":"l","type":"L"},{"name":"m","type":"L"}]}',
        (low,),
    )
    whole = canonical_text(inlined(top.value, (low,)))
    assert parse(whole).names.keys() == {"L", "y.T"}


def test_a_type_inside_another_schema_is_taken_out_of_it() -> None:
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


def test_a_schema_may_be_nothing_but_another_one() -> None:
    """A name alone, a union, or an array of it; and a union that is referred to has no name."""
    part = parse(record("x.Part", n="int"))
    written = {"type": "record", "name": "Part", "namespace": "x"}
    fields = {"fields": [{"name": "n", "type": "int"}]}
    assert whole('"x.Part"', part).value == {**written, **fields}
    assert whole('["null","x.Part"]', part).value == ["null", {**written, **fields}]
    both = parse(f"[{record('x.A', n='int')},{record('x.B', n='int')}]")
    assert whole('{"type":"map","values":"x.B"}', both).names.keys() == {"x.B"}


def test_one_type_through_two_others_is_written_once() -> None:
    """As Java Avro demands: a type is defined once."""
    low = parse(record("x.Low", n="int"))
    left, right = parse(record("x.L", low="Low"), (low,)), parse(record("z.R", low="x.Low"), (low,))
    found = whole(record("T", l="x.L", r="z.R", low="x.Low"), low, left, right)
    assert found.text.count('"Low","fields"') + found.text.count('"Low","namespace"') == 1
    assert found.names.keys() == {"x.Low", "x.L", "z.R", "T"}


def test_a_record_that_holds_itself_comes_to_an_end() -> None:
    """Inside of itself it is a name."""
    tree = parse(record("x.Tree", branches={"type": "array", "items": "Tree"}))
    assert whole(record("T", tree="x.Tree", other="x.Tree"), tree).names.keys() == {"x.Tree", "T"}


@calm
@given(schemas())
def test_whatever_is_written_out_means_the_same(schema: AvroSchema) -> None:
    """Alone, and where another schema does nothing but name it and what is inside of it."""
    assert dict(whole(schema.text).names) == dict(schema.names)
    for name in schema.names:
        found = whole(f'{{"type":"array","items":"{name}"}}', schema)
        assert {one: schema.names[one] for one in found.names} == dict(found.names)
