"""Defaults of fields: check them against their types, and turn them into Python values.

A schema text writes a default as the type below a logical type: a timestamp as a number, bytes as
a string of the characters 0 to 255.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pipeline.errors import BrokenInvariantError, SchemaError
from schemas.logical import decimal_from_bytes, from_avro_number
from schemas.types import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    MISSING,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    Kind,
    Logical,
    MapType,
    NamedType,
    Primitive,
    RecordType,
    Reference,
    UnionType,
    shown,
)


def default_problem(  # noqa: PLR0911 - one return for each kind
    avro_type: AvroType, value: object, names: Mapping[str, NamedType]
) -> tuple[str, str] | None:
    """Why a JSON value is no default of a type: (path below it, message); None if it is one."""
    resolved = names[avro_type.name] if isinstance(avro_type, Reference) else avro_type
    match resolved:
        case Primitive(kind):
            return None if _fits_primitive(kind, value) else _not_a(value, kind.value)
        case FixedType(name, size=size):
            fits = isinstance(value, str) and _latin(value) and len(value) == size
            return None if fits else _not_a(value, f"{name} of {size} bytes")
        case EnumType(name, symbols=symbols):
            return None if value in symbols else _not_a(value, f"symbol of {name}")
        case ArrayType(items):
            if not isinstance(value, list):
                return _not_a(value, "array")
            parts = [(f"/{index}", items, item) for index, item in enumerate(value)]
            return _first_problem(parts, names)
        case MapType(values):
            if not isinstance(value, dict):
                return _not_a(value, "map")
            return _first_problem([(f"/{k}", values, item) for k, item in value.items()], names)
        case UnionType(branches):
            fits = any(default_problem(branch, value, names) is None for branch in branches)
            return None if fits else _not_a(value, "value of any branch of the union")
        case RecordType():
            return _record_problem(resolved, value, names)


def _first_problem(
    parts: list[tuple[str, AvroType, object]], names: Mapping[str, NamedType]
) -> tuple[str, str] | None:
    for path, avro_type, value in parts:
        problem = default_problem(avro_type, value, names)
        if problem:
            return f"{path}{problem[0]}", problem[1]
    return None


def _record_problem(
    record: RecordType, value: object, names: Mapping[str, NamedType]
) -> tuple[str, str] | None:
    if not isinstance(value, dict):
        return _not_a(value, f"record {record.name}")
    for part in record.fields:
        if part.name not in value and part.default is MISSING:
            return "", f"the field {part.name} of {record.name} is missing and has no default"
        if part.name in value:
            problem = default_problem(part.type, value[part.name], names)
            if problem:
                return f"/{part.name}{problem[0]}", problem[1]
    return None


def _not_a(value: object, what: str) -> tuple[str, str]:
    return "", f"{shown(value)} is not a default for {what}"


def _latin(value: str) -> bool:
    return all(ord(character) <= 255 for character in value)  # noqa: PLR2004 - a byte's range


def _fits_primitive(kind: Kind, value: object) -> bool:  # noqa: PLR0911 - one for each kind
    whole = isinstance(value, int) and not isinstance(value, bool)
    match kind:
        case Kind.NULL:
            return value is None
        case Kind.BOOLEAN:
            return isinstance(value, bool)
        case Kind.INT:
            return isinstance(value, int) and whole and INT_MIN <= value <= INT_MAX
        case Kind.LONG:
            return isinstance(value, int) and whole and LONG_MIN <= value <= LONG_MAX
        case Kind.FLOAT | Kind.DOUBLE:
            return whole or isinstance(value, float)
        case Kind.BYTES:
            return isinstance(value, str) and _latin(value)
        case _:
            return isinstance(value, str)


def native_default(field: Field, names: Mapping[str, NamedType]) -> Any:
    """The Python value of a field's default, made fresh on every call.

    Raises:
        SchemaError: the number is no value of its logical type, such as a date in the year 20000.
    """
    try:
        return _native(field.type, field.default, names)
    except ValueError as error:
        raise SchemaError(f"not a default: {error}", place=f"/fields/{field.name}") from error


def _native(  # noqa: C901, PLR0911 - one return for each kind
    avro_type: AvroType, value: Any, names: Mapping[str, NamedType]
) -> Any:
    resolved = names[avro_type.name] if isinstance(avro_type, Reference) else avro_type
    match resolved:
        case Primitive():
            return _native_primitive(resolved, value)
        case FixedType(logical=Logical.DECIMAL, scale=scale):
            return decimal_from_bytes(value.encode("latin-1"), scale)
        case FixedType():
            return value.encode("latin-1")
        case EnumType():
            return value
        case ArrayType(items):
            return [_native(items, part, names) for part in value]
        case MapType(values):
            return {key: _native(values, part, names) for key, part in value.items()}
        case RecordType(fields=fields):
            return {f.name: _native(f.type, value.get(f.name, f.default), names) for f in fields}
        case UnionType(branches):
            for branch in branches:
                if default_problem(branch, value, names) is None:
                    return _native(branch, value, names)
            raise BrokenInvariantError("a default that was checked fits no branch of its union")


def _native_primitive(primitive: Primitive, value: Any) -> Any:
    match primitive:
        case Primitive(Kind.BYTES, Logical.DECIMAL, _, scale):
            return decimal_from_bytes(value.encode("latin-1"), scale)
        case Primitive(Kind.BYTES):
            return value.encode("latin-1")
        case Primitive(Kind.FLOAT | Kind.DOUBLE):
            return float(value)
        case Primitive(Kind.STRING, Logical.UUID):
            return UUID(value)
        case Primitive(logical=Logical() as logical):
            return from_avro_number(logical, value)
    return value
