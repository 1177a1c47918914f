"""Conversion of JSON to Avro values by a schema, for records that people write.

Unlike in Avro's own JSON encoding, values of unions are plain: `null` or `3`, not `{"long": 3}`
(which is accepted too, if no branch accepts the plain value). If several branches of a union accept
a value, the first one in the schema's order is used. `docs/reference/schemas.md` has the rules.
"""

import base64
import math
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import NoReturn
from uuid import UUID

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.defaults import native_default
from schemas.logical import (
    EPOCH,
    LOCAL_EPOCH,
    LOCAL_TIMESTAMPS,
    TIMES,
    UTC_TIMESTAMPS,
    Native,
    at_scale,
    decimal_problem,
    from_avro_number,
    truncated,
)
from schemas.types import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    MISSING,
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

BASE64 = "base64"
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FLOAT = struct.Struct("<f")
_RANGES = {Kind.INT: (INT_MIN, INT_MAX), Kind.LONG: (LONG_MIN, LONG_MAX)}


def from_json(schema: AvroSchema, json_value: Native) -> Native:
    """Convert a JSON value, as `json.loads` returns it, to a Python value for `codec.encode`.

    Missing fields of records get their defaults. Numbers may be `Decimal`, as `json.loads` returns
    them with `parse_float=Decimal`, which keeps all digits.

    Raises:
        SchemaError: the value does not fit; `place` is the path of the part that does not.
    """
    return _Reading(schema).value(schema.root, json_value, "")


def fields_from_json(schema: AvroSchema, json_value: Mapping[str, Native]) -> dict[str, Native]:
    """Convert some fields of a record; missing fields stay missing.

    Raises:
        SchemaError: the schema is no record, has no such field, or a value does not fit.
    """
    root = schema.root
    if not isinstance(root, RecordType):
        _fail("", f"{describe(root)} has no fields")
    types = {field.name: field.type for field in root.fields}
    for name in json_value:
        if name not in types:
            _no_field(root, name, "")
    reading = _Reading(schema)
    return {name: reading.value(types[name], v, f"/{name}") for name, v in json_value.items()}


def _no_field(record: RecordType, name: str, path: str) -> NoReturn:
    known = ", ".join(field.name for field in record.fields)
    _fail(f"{path}/{name}", f"{record.name} has no such field (there is: {known})")


def _fail(path: str, message: str, hint: str = "") -> NoReturn:
    raise SchemaError(message, place=path or "/", hint=hint)


def _not_a(path: str, value: Native, avro_type: AvroType) -> NoReturn:
    _fail(path, f"{shown(value)} is not a value of {describe(avro_type)}")


class _Reading:
    """Conversion of JSON values to Python values."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def value(  # noqa: C901, PLR0911 - one case for each kind
        self, avro_type: AvroType, value: Native, path: str
    ) -> Native:
        """Convert one value at a path."""
        resolved = self._schema.resolve(avro_type)
        match resolved:
            case Primitive():
                return _primitive(resolved, value, path)
            case FixedType():
                return _fixed(resolved, value, path)
            case EnumType(symbols=symbols):
                if value not in symbols:
                    _fail(path, f"{shown(value)} is not one of {', '.join(symbols)}")
                return value
            case ArrayType(items):
                if not isinstance(value, list):
                    _not_a(path, value, resolved)
                return [self.value(items, part, f"{path}/{i}") for i, part in enumerate(value)]
            case MapType(values):
                if not isinstance(value, dict):
                    _not_a(path, value, resolved)
                return {
                    key: self.value(values, part, f"{path}/{key}") for key, part in value.items()
                }
            case RecordType():
                return self._record(resolved, value, path)
            case UnionType():
                return self._union(resolved, value, path)

    def _record(self, record: RecordType, value: Native, path: str) -> dict[str, Native]:
        if not isinstance(value, dict):
            _not_a(path, value, record)
        known = [field.name for field in record.fields]
        for key in value:
            if key not in known:
                _no_field(record, key, path)
        made: dict[str, Native] = {}
        for field in record.fields:
            if field.name in value:
                made[field.name] = self.value(field.type, value[field.name], f"{path}/{field.name}")
            elif field.default is not MISSING:
                made[field.name] = native_default(field, self._schema.names)
            else:
                _fail(
                    f"{path}/{field.name}",
                    f"the field is missing; its type is {describe(field.type)}, without default",
                )
        return made

    def _union(self, union: UnionType, value: Native, path: str) -> Native:
        branches = [self._schema.resolve(branch) for branch in union.branches]
        if value is None:
            if any(branch.kind is Kind.NULL for branch in branches):
                return None
            _fail(path, f"null is not a value of {describe(union)}")
        problems: list[SchemaError] = []
        for branch in _in_order(branches, value):
            try:
                return _named(branches, branch, self.value(branch, value, path))
            except SchemaError as error:
                problems.append(error)
        if isinstance(value, dict) and len(value) == 1:
            tag, inner = next(iter(value.items()))
            for branch in branches:
                if tag == tag_of(branch):
                    return _named(branches, branch, self.value(branch, inner, f"{path}/{tag}"))
        if len(problems) == 1:
            raise problems[0]
        deeper = next((problem for problem in problems if problem.place != (path or "/")), None)
        if deeper is not None:
            raise deeper
        _not_a(path, value, union)


def tag_of(branch: ResolvedType) -> str:
    """The name of a union branch in Avro's own JSON encoding."""
    if isinstance(branch, RecordType | EnumType | FixedType):
        return branch.name
    return branch.kind.value


def _in_order(branches: list[ResolvedType], value: Native) -> list[ResolvedType]:
    """The branches that may accept a value, in the order in which they are tried."""
    tried = [branch for branch in branches if branch.kind is not Kind.NULL]
    if _is_base64(value):
        tried.sort(key=lambda branch: branch.kind not in {Kind.BYTES, Kind.FIXED})
    return tried


def _named(branches: list[ResolvedType], branch: ResolvedType, value: Native) -> Native:
    """The value, with its branch's name if fastavro could choose another branch."""
    objects = [other for other in branches if other.kind in {Kind.RECORD, Kind.MAP}]
    if len(objects) > 1 and branch in objects:
        return (tag_of(branch), value)
    return value


def _is_base64(value: Native) -> bool:
    return isinstance(value, dict) and list(value) == [BASE64]


def _raw_bytes(value: Native, path: str, avro_type: AvroType) -> bytes:
    if isinstance(value, str):
        return _text(value, path).encode()
    encoded = value[BASE64] if isinstance(value, dict) and _is_base64(value) else None
    if isinstance(encoded, str):
        try:
            return base64.b64decode(encoded, validate=True)
        except ValueError as error:  # also for non-ASCII letters
            raise SchemaError(f"not base64: {error}", place=path or "/") from error
    _not_a(path, value, avro_type)


def _fixed(fixed: FixedType, value: Native, path: str) -> Native:
    if fixed.logical is Logical.DECIMAL:
        return _decimal(fixed, value, path)
    raw = _raw_bytes(value, path, fixed)
    if len(raw) != fixed.size:
        _fail(path, f"{len(raw)} bytes for {describe(fixed)}")
    return raw


def _decimal(avro_type: Primitive | FixedType, value: Native, path: str) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        _not_a(path, value, avro_type)
    try:
        number = Decimal(str(value))
    except InvalidOperation as error:
        raise SchemaError(f"{shown(value)} is not a decimal number", place=path or "/") from error
    problem = decimal_problem(number, avro_type.precision, avro_type.scale)
    if problem:
        _fail(path, f"{problem} ({describe(avro_type)})")
    return at_scale(number, avro_type.scale)


def _primitive(  # noqa: PLR0911 - one return for each kind
    avro_type: Primitive, value: Native, path: str
) -> Native:
    if avro_type.logical is not None:
        return _logical(avro_type, avro_type.logical, value, path)
    match avro_type.kind:
        case Kind.NULL if value is None:
            return None
        case Kind.BOOLEAN if isinstance(value, bool):
            return value
        case Kind.STRING if isinstance(value, str):
            return _text(value, path)
        case Kind.BYTES:
            return _raw_bytes(value, path, avro_type)
        case Kind.INT | Kind.LONG as kind:
            return _whole(kind, value, path)
        case Kind.FLOAT | Kind.DOUBLE as kind:
            return _floating(kind, value, path)
        case _:
            _not_a(path, value, avro_type)


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _fail(path, "the text has half of a surrogate pair")
    return value


def _whole(kind: Kind, value: Native, path: str) -> int:
    low, high = _RANGES[kind]
    if isinstance(value, bool) or not isinstance(value, int):
        _fail(path, f"{shown(value)} is not a whole number, which {kind} needs")
    if not low <= value <= high:
        _fail(path, f"{value} is outside of the range of {kind}")
    return value


def _floating(kind: Kind, value: Native, path: str) -> float:
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        _fail(path, f"{shown(value)} is not a number, which {kind} needs")
    try:
        number = float(value)
        if kind is Kind.FLOAT:
            _FLOAT.pack(number)
    except OverflowError:
        _fail(path, f"{shown(value)} is outside of the range of {kind}")
    return number


def _logical(avro_type: Primitive, logical: Logical, value: Native, path: str) -> Native:
    if logical is Logical.DECIMAL:
        return _decimal(avro_type, value, path)
    if isinstance(value, bool) or not isinstance(value, str | int):
        _not_a(path, value, avro_type)
    try:
        return _LOGICAL_READERS[logical](logical, value)
    except (ValueError, OverflowError) as error:
        message = f"{shown(value)} is not a value of {describe(avro_type)}: {error}"
        raise SchemaError(message, place=path or "/") from error


def _uuid(_: Logical, value: str | int) -> UUID:
    if isinstance(value, int):
        raise ValueError("a UUID is written as a string")  # noqa: TRY004 - becomes a SchemaError
    return UUID(value)


def _date(logical: Logical, value: str | int) -> Native:
    return from_avro_number(logical, value) if isinstance(value, int) else date.fromisoformat(value)


def _time(logical: Logical, value: str | int) -> Native:
    if isinstance(value, int):
        return from_avro_number(logical, value)
    parsed = time.fromisoformat(value)
    if parsed.tzinfo is not None:
        raise ValueError("a time of day has no zone")
    return truncated(logical, parsed)


def _timestamp(logical: Logical, value: str | int) -> Native:
    """Convert a timestamp; numbers are always milliseconds, a text without zone is UTC."""
    if isinstance(value, int):
        return EPOCH + timedelta(milliseconds=value)
    parsed = datetime.fromisoformat(value)
    return truncated(logical, parsed.replace(tzinfo=parsed.tzinfo or UTC).astimezone(UTC))


def _local_timestamp(logical: Logical, value: str | int) -> Native:
    if isinstance(value, int):
        return LOCAL_EPOCH + timedelta(milliseconds=value)
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is not None:
        raise ValueError("a local timestamp has no zone")
    return truncated(logical, parsed)


_LOGICAL_READERS: Mapping[Logical, Callable[[Logical, str | int], Native]] = {
    Logical.UUID: _uuid,
    Logical.DATE: _date,
    **dict.fromkeys(TIMES, _time),
    **dict.fromkeys(UTC_TIMESTAMPS, _timestamp),
    **dict.fromkeys(LOCAL_TIMESTAMPS, _local_timestamp),
}
