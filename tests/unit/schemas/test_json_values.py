import json
import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.codec import decode, encode, fields_from_json, from_json, to_json
from tests.unit.schemas.strategies import schemas, values


def _of(logical: str, base: str, **more: int) -> str:
    return json.dumps({"type": base, "logicalType": logical, **more})


MILLIS, MICROS = _of("timestamp-millis", "long"), _of("timestamp-micros", "long")
LOCAL = _of("local-timestamp-millis", "long")
PRICE = _of("decimal", "bytes", precision=6, scale=2)
NOON = datetime(2026, 3, 1, 12, 0, 0, 123000, tzinfo=UTC)


@given(st.data(), schemas())
def test_json_round_trip(data: st.DataObject, schema: AvroSchema) -> None:
    """A value written as a JSON line is read as an equal value, through real JSON text."""
    value = data.draw(values(schema))
    text = json.dumps(to_json(schema, value), allow_nan=False)
    assert from_json(schema, json.loads(text)) == value


_ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f0", "f1", "base64", "long"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(schemas(), _ANY_JSON)
def test_any_json_fits_or_is_a_schema_error(schema: AvroSchema, value: Any) -> None:
    """Any JSON becomes a value that can be encoded, or a SchemaError."""
    try:
        read = from_json(schema, value)
    except SchemaError as error:
        place = error.place
    else:
        place = "/"
        encode(schema, read)
    assert place.startswith("/")


GOOD: list[tuple[str, Any, Any]] = [
    ('"null"', None, None),
    ('"double"', 1, 1.0),
    ('"double"', "Infinity", math.inf),
    ('"double"', Decimal("1.5"), 1.5),
    ('"bytes"', "ä", "ä".encode()),
    ('"bytes"', {"base64": "/w=="}, b"\xff"),
    (MILLIS, "2026-03-01T12:00:00.123456Z", NOON),
    (MILLIS, "2026-03-01T13:00:00.123+01:00", NOON),
    (MILLIS, "2026-03-01T12:00:00.123", NOON),
    (MILLIS, "2026-03-01", datetime(2026, 3, 1, tzinfo=UTC)),
    (MILLIS, 1772366400123, NOON),
    (MICROS, 1772366400123, NOON),
    (LOCAL, "2026-03-01T12:00:00.123", NOON.replace(tzinfo=None)),
    (LOCAL, 1772366400123, NOON.replace(tzinfo=None)),
    (_of("date", "int"), "2026-03-01", date(2026, 3, 1)),
    (_of("date", "int"), 1, date(1970, 1, 2)),
    (_of("time-millis", "int"), "12:30:00.5009", time(12, 30, 0, 500_000)),
    (_of("time-micros", "long"), 1_000_000, time(0, 0, 1)),
    (_of("uuid", "string"), "00000000-0000-0000-0000-000000000001", UUID(int=1)),
    (PRICE, "12.5", Decimal("12.50")),
    (PRICE, 12.34, Decimal("12.34")),
    (PRICE, -7, Decimal("-7.00")),
    (PRICE, "1e3", Decimal("1000.00")),
    (PRICE, "0e-99", Decimal("0.00")),
    ('["null","long"]', 3, 3),
    ('["null","long"]', {"long": 3}, 3),
    ('["null","long"]', None, None),
    ('["int","double"]', 2**40, float(2**40)),
    ('["int","string"]', "x", "x"),
]


@pytest.mark.parametrize(("schema", "value", "expected"), GOOD)
def test_accepted_forms(schema: str, value: Any, expected: Any) -> None:
    """Each JSON form has this value, which the codec accepts."""
    parsed = parse(schema)
    read = from_json(parsed, value)
    assert read == expected
    assert type(read) is type(expected)
    assert decode(parsed, parsed, encode(parsed, read)) == expected


BAD: list[tuple[str, Any, str]] = [
    ('"null"', 1, "not a value of null"),
    ('"boolean"', 1, "not a value of boolean"),
    ('"int"', 2**31, "outside of the range of int"),
    ('"int"', 1.5, "not a whole number"),
    ('"long"', True, "not a whole number"),
    ('"long"', "5", "not a whole number"),
    ('"float"', 1e300, "outside of the range of float"),
    ('"double"', 10**400, "outside of the range of double"),
    ('"double"', "one", "not a number"),
    ('"string"', 5, "not a value of string"),
    ('"string"', "\ud800", "surrogate"),
    ('"bytes"', "\ud800", "surrogate"),
    ('"bytes"', {"base64": "?"}, "not base64"),
    ('"bytes"', {"base64": "ß"}, "not base64"),
    ('"bytes"', {"base64": 1}, "not a value of bytes"),
    (MILLIS, "noon", "timestamp-millis"),
    (MILLIS, 1.5, "timestamp-millis"),
    (MILLIS, 10**18, "timestamp-millis"),
    (LOCAL, "2026-03-01T12:00:00Z", "has no zone"),
    (_of("date", "int"), 10**8, "outside of the years"),
    (_of("time-millis", "int"), 86_400_000, "not within a day"),
    (_of("time-millis", "int"), "12:00:00Z", "has no zone"),
    (_of("uuid", "string"), "x", "uuid"),
    (_of("uuid", "string"), 7, "written as a string"),
    (PRICE, "1.234", "more than 2 digits behind the point"),
    (PRICE, "12345", "more than 4 digits before the point"),
    (PRICE, "1e999999999", "before the point"),
    (PRICE, "NaN", "not a finite number"),
    (PRICE, "cheap", "not a decimal number"),
    (PRICE, True, "not a value of"),
    ('{"type":"fixed","name":"F","size":2}', "abc", "3 bytes for fixed F of 2 bytes"),
    ('{"type":"enum","name":"E","symbols":["A","B"]}', "C", "not one of A, B"),
    ('{"type":"array","items":"int"}', {}, "not a value of array of int"),
    ('{"type":"map","values":"int"}', [], "not a value of map of int"),
    ('["int","string"]', None, "null is not a value of union"),
    ('["int","string"]', 1.5, "not a value of union of int and string"),
]


@pytest.mark.parametrize(("schema", "value", "message"), BAD)
def test_refused_forms(schema: str, value: Any, message: str) -> None:
    """A JSON value that does not fit is a SchemaError at the root."""
    with pytest.raises(SchemaError) as caught:
        from_json(parse(schema), value)
    assert message in caught.value.message
    assert caught.value.place == "/"


CAR = parse(
    """{"type":"record","name":"Car","fields":[
        {"name":"id","type":"long"},
        {"name":"kind","type":"string","default":"car"},
        {"name":"speeds","type":{"type":"array","items":"int"},"default":[]},
        {"name":"where","type":["null",{"type":"record","name":"Place","fields":[
            {"name":"segment","type":"int"}]}],"default":null}]}"""
)


def test_records_get_their_defaults() -> None:
    """Omitted fields have the schema's defaults, a new object each time."""
    first, second = from_json(CAR, {"id": 1}), from_json(CAR, {"id": 1})
    assert first == {"id": 1, "kind": "car", "speeds": [], "where": None}
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    assert first["speeds"] is not second["speeds"]


@pytest.mark.parametrize(
    ("value", "place", "message"),
    [
        ({}, "/id", "the field is missing; its type is long, without default"),
        ({"id": 1, "colour": "red"}, "/colour", "there is: id, kind, speeds, where"),
        ({"id": 1, "speeds": [1, "2"]}, "/speeds/1", "not a whole number"),
        ({"id": 1, "where": {"segment": "x"}}, "/where/segment", "not a whole number"),
        ({"id": 1, "where": 5}, "/where", "not a value of record Place"),
        ([], "/", "not a value of record Car"),
    ],
)
def test_errors_in_records_are_named_with_their_path(value: Any, place: str, message: str) -> None:
    """The path leads to the part that does not fit, through unions too."""
    with pytest.raises(SchemaError) as caught:
        from_json(CAR, value)
    assert caught.value.place == place
    assert message in caught.value.message


def test_a_partial_record_stays_partial() -> None:
    """Missing fields get no default; errors are reported as in a whole record."""
    schema = parse(
        """{"type":"record","name":"R","fields":[
            {"name":"a","type":"int"},{"name":"b","type":"int","default":1}]}"""
    )
    assert fields_from_json(schema, {"a": 2}) == {"a": 2}
    assert fields_from_json(schema, {}) == {}
    for value, place in (({"a": "x"}, "/a"), ({"c": 1}, "/c")):
        with pytest.raises(SchemaError) as caught:
            fields_from_json(schema, value)
        assert caught.value.place == place
    with pytest.raises(SchemaError, match="has no fields"):
        fields_from_json(parse('"int"'), {})


def test_unions_of_records_keep_their_branch() -> None:
    """A value of the second record is written as the second record."""
    schema = parse(
        """[{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},
            {"type":"record","name":"B","fields":[
                {"name":"y","type":"int"},{"name":"z","type":"int","default":0}]}]"""
    )
    value = from_json(schema, {"y": 1})
    assert value == ("B", {"y": 1, "z": 0})
    body = encode(schema, value)
    assert body[0] == 2
    assert to_json(schema, decode(schema, schema, body)) == {"y": 1, "z": 0}
    assert to_json(schema, value) == {"y": 1, "z": 0}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ('"bytes"', b"abc", "abc"),
        ('"bytes"', b"\xff", {"base64": "/w=="}),
        ('"double"', math.nan, "NaN"),
        ('"double"', -math.inf, "-Infinity"),
        (MILLIS, NOON, "2026-03-01T12:00:00.123Z"),
        (MICROS, NOON.replace(microsecond=1), "2026-03-01T12:00:00.000001Z"),
        (LOCAL, NOON.replace(tzinfo=None), "2026-03-01T12:00:00.123"),
        (PRICE, Decimal("1E+3"), "1000"),
        (_of("date", "int"), date(2026, 3, 1), "2026-03-01"),
        ('["null","int"]', None, None),
    ],
)
def test_display_form_of_values(schema: str, value: Any, expected: Any) -> None:
    """The JSON for users."""
    assert to_json(parse(schema), value) == expected


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ('"int"', "x"),
        ('"int"', True),
        ('"string"', 5),
        (_of("date", "int"), NOON),
        ('["null","int"]', "x"),
        ('["null","int"]', ("string", "x")),
        ('{"type":"enum","name":"E","symbols":["A"]}', "B"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}', {}),
    ],
)
def test_values_of_another_type_have_no_display_form(schema: str, value: Any) -> None:
    """A value that does not belong to the schema is a SchemaError."""
    with pytest.raises(SchemaError, match="not a value of"):
        to_json(parse(schema), value)
