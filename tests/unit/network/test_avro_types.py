"""Avro schemas as columns and back."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from pipeline.network.avro_types import read, to_avro
from pipeline.network.types import (
    ArrayType,
    Column,
    Columns,
    DataType,
    DecimalType,
    EnumForm,
    Form,
    MapType,
    Scalar,
    StructType,
    UuidForm,
)
from schemas.avro import parse
from schemas.json_value import Json, JsonObject


def record(*fields: Json) -> JsonObject:
    """A record schema with these fields."""
    return {"type": "record", "name": "R", "namespace": "n", "fields": list(fields)}


def one(schema: Json) -> str:
    """The column of a field of some type, with its NOT NULL or the reason why it is no column."""
    made = read(record({"name": "x", "type": schema}))
    return str(made.columns[0])[2:] if made.columns else f"unreadable: {made.unreadable[0][1]}"


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        ("int", "INT NOT NULL"),
        ("bytes", "BINARY NOT NULL"),
        (["null", "string"], "STRING"),
        (["string", "null"], "STRING"),
        (["int"], "INT NOT NULL"),
        ({"type": "int", "logicalType": "date"}, "DATE NOT NULL"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP NOT NULL"),
        ({"type": "string", "logicalType": "uuid"}, "STRING NOT NULL"),
        ({"type": "long", "logicalType": "unheard-of"}, "BIGINT NOT NULL"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            "DECIMAL(9,2) NOT NULL",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 9},
            "BINARY NOT NULL",
        ),
        (
            {"type": "fixed", "name": "F", "size": 8, "logicalType": "decimal", "precision": 9},
            "DECIMAL(9,0) NOT NULL",
        ),
        ({"type": "fixed", "name": "F", "size": 4}, "BINARY NOT NULL"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "STRING NOT NULL"),
        ({"type": "array", "items": ["null", "int"]}, "ARRAY<INT> NOT NULL"),
        ({"type": "map", "values": "double"}, "MAP<STRING, DOUBLE> NOT NULL"),
        ({"type": {"type": "string"}}, "STRING NOT NULL"),
        (record({"name": "a", "type": "long"}) | {"name": "Q"}, "STRUCT<a: BIGINT> NOT NULL"),
        (["int", "string"], "unreadable: a union of INT and STRING"),
        (["null", "int", "string"], "unreadable: a union of INT and STRING"),
        (
            {"type": "array", "items": ["int", "string"]},
            "unreadable: an array of a union of INT and STRING",
        ),
        ("null", "unreadable: nothing but null"),
        ({"type": "int", "logicalType": "time-millis"}, "unreadable: a time of day without a date"),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            "unreadable: a local time without a zone",
        ),
    ],
)
def test_each_type_is_read(schema: Json, column: str) -> None:
    """Every Avro type is a column, or has a reason."""
    assert one(schema) == column


def test_timestamp_millis_is_kept() -> None:
    """The unit is part of the column."""
    schema = record(
        {"name": "a", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "b", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    )
    assert [column.millis for column in read(schema).columns] == [True, False]


def test_a_field_with_a_reserved_name_is_no_column() -> None:
    """It would conflict with an internal column of the query."""
    made = read(record({"name": "__decoded", "type": "int"}, {"name": "_x", "type": "int"}))
    assert [column.name for column in made.columns] == ["_x"]
    assert made.unreadable == (("__decoded", "a field of which the name begins with __"),)


def test_named_types_are_found_in_their_namespace() -> None:
    """A name used again is the type defined before."""
    kind: JsonObject = {"type": "enum", "name": "Kind", "symbols": ["CAR"]}
    schema = record(
        {"name": "a", "type": kind},
        {"name": "b", "type": ["null", "n.Kind"]},
        {"name": "c", "type": "Kind"},
    )
    assert [str(column) for column in read(schema).columns] == [
        "a STRING NOT NULL",
        "b STRING",
        "c STRING NOT NULL",
    ]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("string", "the schema of a stream must be an Avro record"),
        ({"type": "record", "name": "R"}, "R: the record R has no fields"),
        ({"type": "record", "fields": []}, "a record has no proper name"),
        (record({"name": "a"}), "a: the field has no type"),
        (record({"type": "int"}), "n.R: a field has no proper name"),
        (record({"name": "a", "type": "Nope"}), "a: there is no type Nope"),
        (
            record({"name": "a", "type": "int"}, {"name": "A", "type": "int"}),
            "A: two fields have this name, regardless of case",
        ),
        (
            record({"name": "next", "type": ["null", "R"]}),
            "next: R contains itself, which Spark cannot read",
        ),
        (record({"name": "a", "type": {"type": "array"}}), "a: the array has no items"),
        (record({"name": "a", "type": {"type": "map"}}), "a: the map has no values"),
        (
            record({"name": "a", "type": {"type": "enum", "name": "E"}}),
            "a: the enum n.E has no symbols",
        ),
        (record({"name": "a", "type": 5}), "a: a type must be a name, a list or an object"),
        (
            record(
                {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 40}}
            ),
            "a: a decimal of 40 digits; 38 is the most",
        ),
    ],
)
def test_a_malformed_schema_names_its_path(schema: Json, message: str) -> None:
    """The error, and its place."""
    with pytest.raises(SchemaError) as caught:
        read(schema)
    assert caught.value.message == message


def test_the_text_is_independent_of_key_order_and_documentation() -> None:
    """So that a comment in a schema restarts nothing; defaults and aliases stay."""
    one_way = record({"name": "a", "type": "int", "default": {"doc": 1}, "doc": "what it is"})
    other_way = {**dict(reversed(list(one_way.items()))), "doc": "hello"}
    other_way["fields"] = [{"default": {"doc": 1}, "type": "int", "name": "a"}]
    assert read(one_way).text == read(other_way).text
    assert '"default":{"doc":1}' in read(one_way).text


def test_writing() -> None:
    """Nullable columns have a union with null first and a default; units are kept."""
    columns: Columns = (
        Column("at", Scalar.TIMESTAMP, nullable=False, millis=True),
        Column("exact_at", Scalar.TIMESTAMP, nullable=True),
        Column("n", DecimalType(9, 2), nullable=False),
        Column(
            "r",
            StructType(
                "Any", (Column("xs", ArrayType(Scalar.INT, element_nullable=True), nullable=False),)
            ),
            nullable=False,
        ),
    )
    assert json.loads(to_avro(columns, "Toll", "tolls")) == {
        "type": "record",
        "name": "Toll",
        "namespace": "tolls",
        "fields": [
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "exact_at",
                "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}],
                "default": None,
            },
            {
                "name": "n",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            },
            {
                "name": "r",
                "type": {
                    "type": "record",
                    "name": "Toll_r",
                    "fields": [{"name": "xs", "type": {"type": "array", "items": ["null", "int"]}}],
                },
            },
        ],
    }


COLOUR = {"type": "enum", "name": "Colour", "namespace": "m", "symbols": ["RED", "BLUE"]}


def form_of(schema: Json) -> object:
    """The form of a field of some type."""
    return read(record({"name": "x", "type": schema})).columns[0].form


@pytest.mark.parametrize(
    ("schema", "form"),
    [
        (COLOUR, EnumForm("m.Colour", ("RED", "BLUE"))),
        (["null", {**COLOUR, "default": "RED"}], EnumForm("m.Colour", ("RED", "BLUE"), "RED")),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, EnumForm("n.E", ("A",))),
        ({"type": "string", "logicalType": "uuid"}, UuidForm()),
        ([{"type": "string", "logicalType": "uuid"}, "null"], UuidForm()),
        ("string", None),
        ({"type": "array", "items": COLOUR}, None),
    ],
)
def test_a_column_has_the_form_of_an_enum_or_a_uuid(schema: Json, form: object) -> None:
    """Not inside an array or a map: only columns are written as they were read."""
    assert form_of(schema) == form


def written(*columns: Column, namespace: str = "n") -> list[object]:
    """The written types of columns."""
    return [f["type"] for f in json.loads(to_avro(columns, "R", namespace))["fields"]]


def enum(name: str, *symbols: str, nullable: bool = False) -> Column:
    """A column that is written as an enum."""
    return Column(f"c{len(symbols)}", Scalar.STRING, nullable, form=EnumForm(name, symbols))


def test_an_enum_and_a_uuid_are_written_as_such() -> None:
    """With all attributes of the enum; the union with null is around it."""
    form = EnumForm("m.Colour", ("RED", "BLUE"), "RED")
    assert written(
        Column("a", Scalar.STRING, nullable=False, form=form),
        Column("b", Scalar.STRING, nullable=True, form=UuidForm()),
    ) == [{**COLOUR, "default": "RED"}, ["null", {"type": "string", "logicalType": "uuid"}]]


def test_an_enum_is_defined_once_in_a_schema() -> None:
    """Another one of that name gets another name, and so does one with the name of a record."""
    first, second = enum("m.E", "A"), enum("m.E", "A", nullable=True)
    assert written(first, second)[1] == ["null", "m.E"]
    other = enum("m.E", "A", "B")
    assert written(first, other, other, first)[1:] == [
        {"type": "enum", "name": "E_", "namespace": "m", "symbols": ["A", "B"]},
        "m.E_",
        "m.E",
    ]
    inner = Column("s", StructType("S", (first,)), nullable=False)
    assert written(enum("n.R", "A"), enum("n.R_s", "A"), inner) == [
        {"type": "enum", "name": "R_", "namespace": "n", "symbols": ["A"]},
        {"type": "enum", "name": "R_s", "namespace": "n", "symbols": ["A"]},
        {
            "type": "record",
            "name": "R_s_",
            "fields": [
                {
                    "name": "c1",
                    "type": {"type": "enum", "name": "E", "namespace": "m", "symbols": ["A"]},
                }
            ],
        },
    ]


def test_an_enum_without_a_namespace_is_in_that_of_the_record() -> None:
    """As Avro reads it; so its name can be referred to."""
    same = enum("E", "A")
    assert written(same, same) == [{"type": "enum", "name": "E", "symbols": ["A"]}, "n.E"]
    assert written(same, same, namespace="") == [
        {"type": "enum", "name": "E", "symbols": ["A"]},
        "E",
    ]


def test_a_column_without_a_type_cannot_be_written() -> None:
    """A bare NULL is not allowed in a stream."""
    with pytest.raises(SchemaError, match="a column cannot have the type VOID"):
        to_avro((Column("x", Scalar.NULL, nullable=True),), "R", "")


SCALARS: st.SearchStrategy[DataType] = st.sampled_from(
    [s for s in Scalar if s not in (Scalar.NULL, Scalar.INTERVAL)]
) | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: DecimalType(p, s)))
NAMES = st.sampled_from(["a", "b", "a_b", "c"])


FORMS = st.none() | st.just(UuidForm()) | st.builds(
    EnumForm,
    st.sampled_from(["E", "n.E", "m.E", "n.R", "n.R_a", "n.R_a_b"]),
    st.sampled_from([("A",), ("A", "B")]),
    st.sampled_from([None, "A"]),
)  # fmt: skip


def formed(column: Column) -> st.SearchStrategy[Column]:
    """A column, maybe with a form if it is a text."""
    forms = FORMS if column.type is Scalar.STRING else st.none()
    return forms.map(lambda form: replace(column, form=form))


def columns_of(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[Columns]:
    """Columns with different names."""
    column = st.builds(Column, NAMES, types, st.booleans()).flatmap(formed)
    return st.lists(column, min_size=1, max_size=3, unique_by=lambda c: c.name).map(tuple)


TYPES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(ArrayType, inner, st.booleans()),
        st.builds(MapType, inner, st.booleans()),
        st.builds(StructType, st.just("S"), columns_of(inner)),
    ),
    max_leaves=6,
)


def shape(data_type: DataType) -> object:
    """A type without the names of its records, which follow from their place."""
    if isinstance(data_type, StructType):
        return [(c.name, shape(c.type), c.nullable) for c in data_type.fields]
    if isinstance(data_type, ArrayType):
        return ("array", shape(data_type.element), data_type.element_nullable)
    if isinstance(data_type, MapType):
        return ("map", shape(data_type.value), data_type.value_nullable)
    return data_type


def _meant(form: Form | None) -> object:
    """A form without the name of an enum, which is changed where two would be equal."""
    return (form.symbols, form.default) if isinstance(form, EnumForm) else form


@given(columns_of(TYPES))
def test_written_schemas_round_trip(columns: Columns) -> None:
    """Names, types and nullability are preserved; no column becomes unreadable."""
    text = to_avro(columns, "R", "n")
    parse(text)
    made = read(json.loads(text))
    assert [_meant(c.form) for c in made.columns] == [_meant(c.form) for c in columns]
    assert made.unreadable == ()
    assert [(c.name, shape(c.type), c.nullable) for c in made.columns] == [
        (c.name, shape(c.type), c.nullable) for c in columns
    ]
