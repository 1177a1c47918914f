import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.codec import decode, encode, read_container
from schemas.defaults import native_default
from schemas.types import (
    INT_MAX,
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    Logical,
    MapType,
    Primitive,
    RecordType,
    UnionType,
)
from tests.unit.schemas.strategies import schemas, values

VECTORS = Path(__file__).parents[2] / "data" / "avro_compat_vectors.json"
COMPATIBLE: list[dict[str, Any]] = [
    case
    for case in json.loads(VECTORS.read_text(encoding="utf-8"))
    if case["result"] == "COMPATIBLE" and case["writer"] != []
]
SIGHTING = parse(
    """{"type":"record","name":"Sighting","fields":[
        {"name":"car","type":"long"},
        {"name":"seen_at","type":{"type":"long","logicalType":"timestamp-millis"}}]}"""
)


@given(st.data(), schemas())
def test_encoding_round_trips(data: st.DataObject, schema: AvroSchema) -> None:
    """Every value of every schema is preserved."""
    value = data.draw(values(schema))
    assert decode(schema, schema, encode(schema, value)) == value


def test_bytes_are_those_of_the_specification() -> None:
    """A long is zigzag, a timestamp is its milliseconds."""
    value = {"car": 5, "seen_at": datetime(1970, 1, 1, 0, 0, 0, 1000, tzinfo=UTC)}
    assert encode(SIGHTING, value) == b"\x0a\x02"


@given(st.data(), schemas())
def test_broken_bodies_are_schema_errors(data: st.DataObject, schema: AvroSchema) -> None:
    """Any bytes are decoded or raise a SchemaError, nothing else."""
    body = data.draw(st.binary(max_size=30))
    refused = ""
    try:
        decode(schema, schema, body)
    except SchemaError as error:
        refused = error.message
    assert not refused or "the bytes are no" in refused


def test_trailing_bytes_are_an_error() -> None:
    """A body ends with its value."""
    with pytest.raises(SchemaError, match="1 of them are left over"):
        decode(SIGHTING, SIGHTING, b"\x0a\x02\x00")


@pytest.mark.parametrize(
    "value", [{}, {"car": 1}, {"car": "x", "seen_at": 0}, None, {"car": 1, "seen_at": 0, "x": 1}]
)
def test_values_that_do_not_fit_are_schema_errors(value: Any) -> None:
    """A missing field, a wrong type, an unknown field."""
    with pytest.raises(SchemaError, match="does not fit Sighting"):
        encode(SIGHTING, value)


DEFAULTS = parse(
    """{"type":"record","name":"D","fields":[
        {"name":"raw","type":"bytes","default":"\\u00ff"},
        {"name":"at","type":{"type":"long","logicalType":"timestamp-micros"},"default":1},
        {"name":"day","type":{"type":"int","logicalType":"date"},"default":1},
        {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2},
         "default":"\\u0001\\u0000"},
        {"name":"id","type":{"type":"string","logicalType":"uuid"},
         "default":"00000000-0000-0000-0000-000000000001"},
        {"name":"maybe","type":["null","bytes"],"default":"x"},
        {"name":"some","type":{"type":"array","items":"float"},"default":[1]},
        {"name":"inner","type":{"type":"record","name":"I","fields":[
            {"name":"n","type":"int","default":7}]},"default":{}}]}"""
)
DEFAULT_VALUE = {
    "raw": b"\xff",
    "at": datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    "day": date(1970, 1, 2),
    "price": Decimal("2.56"),
    "id": UUID(int=1),
    "maybe": b"x",
    "some": [1.0],
    "inner": {"n": 7},
}


def test_defaults_fill_fields_that_a_writer_omits() -> None:
    """Encoding with fields missing is encoding with their defaults."""
    assert encode(DEFAULTS, {}) == encode(DEFAULTS, DEFAULT_VALUE)
    assert decode(DEFAULTS, DEFAULTS, encode(DEFAULTS, {})) == DEFAULT_VALUE


def test_defaults_fill_fields_missing_in_an_older_schema() -> None:
    """A reader's new fields have their defaults, as values of their types."""
    old = parse('{"type":"record","name":"D","fields":[]}')
    assert decode(old, DEFAULTS, b"") == DEFAULT_VALUE


_SIMPLE: dict[Kind, Any] = {
    Kind.NULL: None,
    Kind.BOOLEAN: True,
    Kind.INT: 1,
    Kind.LONG: 1,
    Kind.FLOAT: 0.5,
    Kind.DOUBLE: 0.5,
    Kind.BYTES: b"text",
    Kind.STRING: "text",
}


def _simple(  # noqa: PLR0911 - one return for each kind
    schema: AvroSchema, avro_type: AvroType
) -> Any:
    """One value of a type: of a union's first branch, as small as possible."""
    match schema.resolve(avro_type):
        case Primitive(logical=Logical.DECIMAL):
            return Decimal("1.00")
        case Primitive(logical=Logical.UUID):
            return UUID(int=1)
        case Primitive(kind):
            return _SIMPLE[kind]
        case ArrayType(items):
            return [_simple(schema, items)]
        case MapType(inner):
            return {"key": _simple(schema, inner)}
        case UnionType(branches):
            return _simple(schema, branches[0])
        case FixedType(size=size):
            return b"x" * size
        case EnumType(symbols=symbols):
            return symbols[0]
        case RecordType(fields=fields):
            return {field.name: _simple(schema, field.type) for field in fields}


def test_compatible_readers_do_read() -> None:
    """A compatible pair is decoded with the reader's schema, for every vector."""
    endless = 0
    for case in COMPATIBLE:
        writer, reader = parse(json.dumps(case["writer"])), parse(json.dumps(case["reader"]))
        try:
            value = _simple(writer, writer.root)
        except RecursionError:  # a record that holds itself without an end has no values
            endless += 1
            continue
        decode(writer, reader, encode(writer, value))
    assert endless < len(COMPATIBLE) / 10


def test_a_size_of_a_type_without_size_is_ignored() -> None:
    """Bytes have any length, whatever attributes they have."""
    text = '{"type":"bytes","logicalType":"decimal","precision":4,"size":%d}'
    for size in (0, 10**4000):
        schema = parse(text % size)
        assert decode(schema, schema, encode(schema, Decimal(12))) == Decimal(12)


def test_a_default_outside_of_the_range_is_reported() -> None:
    """Of a decimal with more digits than its precision."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": INT_MAX, "scale": INT_MAX}
    field = {"name": "d", "type": kind, "default": "\u0001"}
    schema = parse(json.dumps({"type": "record", "name": "R", "fields": [field]}))
    assert isinstance(schema.root, RecordType)
    with pytest.raises(SchemaError, match="/fields/d: not a default"):
        native_default(schema.root.fields[0], schema.names)


def test_invalid_decimals_are_plain_bytes() -> None:
    """A decimal without precision is read as the underlying type."""
    schema = parse('{"type":"bytes","logicalType":"decimal"}')
    assert decode(schema, schema, encode(schema, b"ab")) == b"ab"


def test_files_of_other_tools_contain_schema_and_values() -> None:
    """A truncated file, or one that is no Avro, is reported as such."""
    out = io.BytesIO()
    row = {"car": 7, "seen_at": datetime(2026, 1, 1, tzinfo=UTC)}
    fastavro.writer(out, json.loads(SIGHTING.text), [row, row])
    schema, rows = read_container(out.getvalue())
    assert schema == SIGHTING
    assert rows == (row, row)
    for broken in (b"", b"Obj", out.getvalue()[:-3]):
        with pytest.raises(SchemaError, match="no Avro file"):
            read_container(broken)


def test_a_type_that_is_defined_twice_can_be_used() -> None:
    """The driver gets its name at the second place."""
    inner = '{"type":"record","name":"n.I","fields":[{"name":"a","type":"int"}]}'
    fields = f'[{{"name":"x","type":{inner}}},{{"name":"y","type":["null",{inner}]}}]'
    schema = parse(f'{{"type":"record","name":"T","fields":{fields}}}')
    value = {"x": {"a": 1}, "y": {"a": 2}}
    assert decode(schema, schema, encode(schema, value)) == value
