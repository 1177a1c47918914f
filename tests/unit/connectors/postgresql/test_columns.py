import json

import pytest

from connectors.postgresql.columns import Column, as_json, check_key, columns_of, missing_key
from connectors.sink import Result
from pipeline.errors import SchemaError
from pipeline.ids import Offset
from schemas.avro import AvroSchema, parse
from schemas.json_value import Json


def schema_of(**types: Json) -> AvroSchema:
    """A record with fields."""
    fields: list[Json] = [{"name": name, "type": type_} for name, type_ in types.items()]
    return parse(json.dumps({"type": "record", "name": "R", "fields": fields}))


def test_columns_have_the_types_of_fields() -> None:
    """A union with null is that of the other branch; what has parts is JSON."""
    schema = schema_of(
        a=["null", "long"],
        b={"type": "fixed", "name": "F", "size": 2},
        c=["F", "null"],
        d=["int", "string"],
        e={"type": "map", "values": "int"},
        f=["null", {"type": "string", "logicalType": "uuid"}],
        g={"type": "long", "logicalType": "local-timestamp-micros"},
        h={"type": "long", "logicalType": "unknown"},
    )
    types = {one.name: one.type for one in columns_of(schema)}
    assert types == {
        "a": "bigint",
        "b": "bytea",
        "c": "bytea",
        "d": "jsonb",
        "e": "jsonb",
        "f": "uuid",
        "g": "timestamp",
        "h": "bigint",
    }


def test_names_that_a_table_cannot_have_are_refused() -> None:
    """PostgreSQL would cut a long one off, silently; one is that of the id."""
    with pytest.raises(SchemaError, match="63 bytes"):
        columns_of(schema_of(**{"a" * 64: "int"}))
    with pytest.raises(SchemaError, match="id of a result"):
        columns_of(schema_of(medusa_id="int"))


def test_a_key_has_fields_with_one_value() -> None:
    """None that does not exist, or has parts; a null one is found."""
    columns = columns_of(schema_of(a="int", b={"type": "array", "items": "int"}))
    check_key(("a",), columns)
    with pytest.raises(SchemaError, match="has parts"):
        check_key(("b",), columns)
    with pytest.raises(SchemaError, match="no field c"):
        check_key(("c",), columns)
    row = Result({"a": None, "b": []}, 0, Offset(0), "x")
    assert missing_key(row, ("b", "a")) == "a"
    assert missing_key(row, ()) is None


def test_bytes_are_hexadecimal() -> None:
    """Whether they are text or not; null stays null, and nothing else is touched."""
    columns = (Column("raw", "bytea"), Column("text", "text"))
    raws: list[Json] = ["ä\\", {"base64": "/wA="}, None]
    rows = [Result({"raw": raw, "text": "\\x"}, 0, Offset(0), "i") for raw in raws]
    found = json.loads(as_json(rows, columns))
    assert [one["raw"] for one in found] == ["\\xc3a45c", "\\xff00", None]
    assert {(one["text"], one["medusa_id"]) for one in found} == {("\\x", "i")}
    assert rows[0].fields["raw"] == "ä\\"
