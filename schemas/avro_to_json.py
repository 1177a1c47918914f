"""Conversion of Avro values to JSON by a schema, for records that people read.

The inverse of `avro_from_json`, as long as no union has two branches that accept the same JSON
(there the first one is used).
"""

import base64
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import NoReturn
from uuid import UUID

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.avro_from_json import BASE64, tag_of
from schemas.json_value import Json
from schemas.logical import Native, text_of
from schemas.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    Logical,
    MapType,
    Primitive,
    RecordType,
    ResolvedType,
    UnionType,
    describe,
    shown,
)

_PYTHON: Mapping[Kind, tuple[type, ...]] = {
    Kind.NULL: (type(None),),
    Kind.BOOLEAN: (bool,),
    Kind.INT: (int,),
    Kind.LONG: (int,),
    Kind.FLOAT: (float, int),
    Kind.DOUBLE: (float, int),
    Kind.BYTES: (bytes,),
    Kind.STRING: (str,),
    Kind.ARRAY: (list, tuple),
    Kind.MAP: (dict,),
    Kind.FIXED: (bytes,),
    Kind.ENUM: (str,),
    Kind.RECORD: (dict,),
}
_PYTHON_LOGICAL: Mapping[Logical, type] = {
    Logical.DECIMAL: Decimal,
    Logical.UUID: UUID,
    Logical.DATE: date,
    Logical.TIME_MILLIS: time,
    Logical.TIME_MICROS: time,
    Logical.TIMESTAMP_MILLIS: datetime,
    Logical.TIMESTAMP_MICROS: datetime,
    Logical.LOCAL_TIMESTAMP_MILLIS: datetime,
    Logical.LOCAL_TIMESTAMP_MICROS: datetime,
}


def to_json(schema: AvroSchema, value: Native) -> Json:
    """Convert a Python value from `codec.decode` to a value for `json.dumps`.

    Raises:
        SchemaError: the value does not fit the schema; `place` is the path of the part.
    """
    return _write(schema, schema.root, value, "")


def _not_a(path: str, value: Native, avro_type: AvroType) -> NoReturn:
    raise SchemaError(f"{shown(value)} is not a value of {describe(avro_type)}", place=path or "/")


def _write(schema: AvroSchema, avro_type: AvroType, value: Native, path: str) -> Json:
    resolved = schema.resolve(avro_type)
    if isinstance(resolved, UnionType):
        branch, plain = _branch(schema, resolved, value, path)
        return _write(schema, branch, plain, path)
    if not _belongs(resolved, value):
        _not_a(path, value, resolved)
    match resolved:
        case ArrayType(items) if isinstance(value, list | tuple):
            return [_write(schema, items, part, f"{path}/{i}") for i, part in enumerate(value)]
        case MapType(values) if isinstance(value, dict):
            return {k: _write(schema, values, part, f"{path}/{k}") for k, part in value.items()}
        case RecordType(fields=fields) if isinstance(value, dict):
            for field in fields:
                if field.name not in value:
                    _not_a(f"{path}/{field.name}", None, field.type)
            return {
                f.name: _write(schema, f.type, value[f.name], f"{path}/{f.name}") for f in fields
            }
        case _:
            return _plain(value)


def _plain(value: Native) -> Json:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {BASE64: base64.b64encode(value).decode()}
    if isinstance(value, date | time | Decimal | UUID):
        return text_of(value)
    assert not isinstance(value, list | dict | tuple)  # noqa: S101 - their parts are written
    return value


def _belongs(resolved: ResolvedType, value: Native) -> bool:
    """Whether a Python value has the Python type of an Avro type; does not check its parts."""
    if isinstance(resolved, Primitive | FixedType) and resolved.logical is not None:
        python_type = _PYTHON_LOGICAL[resolved.logical]
        exact_date = python_type is not date or not isinstance(value, datetime)
        return isinstance(value, python_type) and exact_date
    if isinstance(value, bool):
        return resolved.kind is Kind.BOOLEAN
    if isinstance(resolved, EnumType):
        return value in resolved.symbols
    if isinstance(resolved, FixedType):
        return isinstance(value, bytes) and len(value) == resolved.size
    return isinstance(value, _PYTHON[resolved.kind])


def _branch(
    schema: AvroSchema, union: UnionType, value: Native, path: str
) -> tuple[ResolvedType, Native]:
    """The union branch of a value, and the value without its branch's name."""
    branches = [schema.resolve(branch) for branch in union.branches]
    if isinstance(value, tuple):
        name, value = value
        branches = [branch for branch in branches if tag_of(branch) == name]
    for branch in branches:
        whole = not isinstance(branch, RecordType) or (
            isinstance(value, dict) and set(value) == {field.name for field in branch.fields}
        )
        if whole and _belongs(branch, value):
            return branch, value
    _not_a(path, value, union)
