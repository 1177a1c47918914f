"""Columns of a table by the schema of its rows, and rows as what PostgreSQL makes them of. Pure."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, LiteralString

from connectors.sink import Result
from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.avro_from_json import BASE64
from schemas.json_value import Json
from schemas.types import AvroType, EnumType, FixedType, Kind, Logical, Primitive, UnionType

ID: Final = "medusa_id"
"""The column with the id of the result that a row is made of."""
_NAME_BYTES: Final = 63
"""PostgreSQL cuts off longer names."""
BYTES: Final[LiteralString] = "bytea"
ANYTHING: Final[LiteralString] = "jsonb"
_SIMPLE: Mapping[Kind, LiteralString] = {
    Kind.BOOLEAN: "boolean",
    Kind.INT: "integer",
    Kind.LONG: "bigint",
    Kind.FLOAT: "real",
    Kind.DOUBLE: "double precision",
    Kind.STRING: "text",
    Kind.BYTES: BYTES,
}
_LOGICAL: Mapping[Logical, LiteralString] = {
    Logical.DECIMAL: "numeric",
    Logical.UUID: "uuid",
    Logical.DATE: "date",
    Logical.TIME_MILLIS: "time",
    Logical.TIME_MICROS: "time",
    Logical.TIMESTAMP_MILLIS: "timestamptz",
    Logical.TIMESTAMP_MICROS: "timestamptz",
    Logical.LOCAL_TIMESTAMP_MILLIS: "timestamp",
    Logical.LOCAL_TIMESTAMP_MICROS: "timestamp",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, and its type in a table that Medusa makes."""

    name: str
    type: LiteralString


def columns_of(schema: AvroSchema) -> tuple[Column, ...]:
    """A column for each field of a record; `jsonb` for what has parts.

    Raises:
        SchemaError: PostgreSQL has no such name, or the id of the row has it.
    """
    root = schema.root
    fields = getattr(root, "fields", ())
    for name in (field.name for field in fields):
        if len(name.encode()) > _NAME_BYTES:
            raise SchemaError(f"a column has at most {_NAME_BYTES} bytes in its name", place=name)
        if name == ID:
            raise SchemaError("the column of this name has the id of a result", place=name)
    return tuple(Column(field.name, _type(schema, field.type)) for field in fields)


def check_key(key: Sequence[str], columns: Sequence[Column]) -> None:
    """Check that the fields of a key exist, and that each has one value.

    Raises:
        SchemaError: one does not.
    """
    types = {one.name: one.type for one in columns}
    for name in key:
        if name not in types:
            raise SchemaError(f"the schema of the topic has no field {name}", place="by")
        if types[name] == ANYTHING:
            raise SchemaError(f"the field {name} has parts, and cannot be a key", place="by")
        if types[name] == BYTES:
            raise SchemaError(f"the field {name} is binary, and cannot be a key", place="by")


def as_json(rows: Sequence[Result], columns: Sequence[Column]) -> str:
    """Rows as a JSON array of objects, whose values PostgreSQL converts by the table's columns."""
    binary = [one.name for one in columns if one.type == BYTES]
    objects = [{**row.fields, ID: row.id} for row in rows]
    for found in objects:
        for name in binary:
            found[name] = _hexadecimal(found.get(name))
    return json.dumps(objects, ensure_ascii=False, separators=(",", ":"))


def missing_key(row: Result, key: Sequence[str]) -> str | None:
    """The field of the key that is null; None: none is."""
    return next((name for name in key if row.fields.get(name) is None), None)


def _type(schema: AvroSchema, type_: AvroType) -> LiteralString:
    found = schema.resolve(type_)
    match found:
        case UnionType():
            others = [one for one in found.branches if one != Primitive(Kind.NULL)]
            return _type(schema, others[0]) if len(others) == 1 else ANYTHING
        case Primitive(logical=Logical() as logical) | FixedType(logical=Logical() as logical):
            return _LOGICAL[logical]
        case Primitive():
            return _SIMPLE.get(found.kind, ANYTHING)
        case FixedType():
            return BYTES
        case EnumType():
            return "text"
        case _:
            return ANYTHING


def _hexadecimal(value: Json) -> Json:
    """Bytes as PostgreSQL reads them; in JSON they are text, or base64 where they are none."""
    if isinstance(value, dict):
        return f"\\x{base64.b64decode(str(value[BASE64])).hex()}"
    return None if value is None else f"\\x{str(value).encode().hex()}"
