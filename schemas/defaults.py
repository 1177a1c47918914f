"""Defaults of fields: validation against their types, and conversion to Python values.

A schema text has the default of a logical type in its underlying type: a timestamp is a number.
Bytes are a string of the characters 0 to 255.
"""

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias
from uuid import UUID

from pipeline.errors import BrokenInvariantError, SchemaError
from schemas.json_value import Json, list_of, number_of, object_of, text_of
from schemas.logical import Native, decimal_from_bytes, from_avro_number
from schemas.nesting import MAX_DEPTH
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
    Missing,
    NamedType,
    Primitive,
    RecordType,
    Reference,
    UnionType,
    shown,
)

_Problem: TypeAlias = tuple[str, str]
"""Path in a value, and message."""
VALUES_MAX: Final = 1_000_000
"""Limit for one default: nested defaults of missing fields can grow without bounds."""
COMPARED_MAX: Final = 1_000_000
"""Limit of comparisons of values with types, for all defaults of a schema: a long list is compared
with every branch of a union, of which there may be thousands."""


class Defaults:
    """Validator of the defaults of one schema, which must not be freed before it.

    Results are memoised: without that, unions of recursive types take exponential time.

    Args:
        names: every named type of the schema.
    """

    def __init__(self, names: Mapping[str, NamedType]) -> None:
        self._names = names
        self._found: dict[tuple[str, int], _Problem | None] = {}
        self._symbols: dict[str, frozenset[str]] = {}
        self._left = COMPARED_MAX

    def problem(  # noqa: C901, PLR0911 - one return for each kind
        self, avro_type: AvroType, value: Json
    ) -> _Problem | None:
        """Why a JSON value is no default of a type: path in the value and message; None if it is.

        The value must not be nested more than `nesting.MAX_DEPTH` deep.

        Raises:
            SchemaError: there are too many values and types to compare.
        """
        self._left -= 1
        if self._left < 0:
            raise SchemaError(f"more than {COMPARED_MAX} values and types to be compared")
        resolved = self._names[avro_type.name] if isinstance(avro_type, Reference) else avro_type
        match resolved:
            case Primitive(kind):
                return None if _fits_primitive(kind, value) else _not_a(value, kind.value)
            case FixedType(name, size=size):
                fits = isinstance(value, str) and _latin(value) and len(value) == size
                return None if fits else _not_a(value, f"{name} of {size} bytes")
            case EnumType(name):
                fits = isinstance(value, str) and value in self._symbols_of(resolved)
                return None if fits else _not_a(value, f"symbol of {name}")
            case ArrayType(items):
                if not isinstance(value, list):
                    return _not_a(value, "array")
                return self._first((f"/{index}", items, one) for index, one in enumerate(value))
            case MapType(values):
                if not isinstance(value, dict):
                    return _not_a(value, "map")
                return self._first((f"/{key}", values, one) for key, one in value.items())
            case UnionType(branches):
                fits = any(self.problem(branch, value) is None for branch in branches)
                return None if fits else _not_a(value, "value of any branch of the union")
            case RecordType(name):
                key = name, id(value)
                if key not in self._found:
                    self._found[key] = self._in_record(resolved, value)
                return self._found[key]

    def _symbols_of(self, enum: EnumType) -> frozenset[str]:
        if enum.name not in self._symbols:
            self._symbols[enum.name] = frozenset(enum.symbols)
        return self._symbols[enum.name]

    def _first(self, parts: Iterable[tuple[str, AvroType, Json]]) -> _Problem | None:
        for path, avro_type, value in parts:
            problem = self.problem(avro_type, value)
            if problem:
                return f"{path}{problem[0]}", problem[1]
        return None

    def _in_record(self, record: RecordType, value: Json) -> _Problem | None:
        if not isinstance(value, dict):
            return _not_a(value, f"record {record.name}")
        for part in record.fields:
            if part.name not in value and part.default is MISSING:
                return "", f"the field {part.name} of {record.name} is missing and has no default"
            if part.name in value:
                problem = self.problem(part.type, value[part.name])
                if problem:
                    return f"/{part.name}{problem[0]}", problem[1]
        return None


def _not_a(value: Json, what: str) -> _Problem:
    return "", f"{shown(value)} is not a default for {what}"


def _latin(value: str) -> bool:
    return all(ord(character) <= 255 for character in value)  # noqa: PLR2004 - a byte's range


def _fits_primitive(kind: Kind, value: Json) -> bool:  # noqa: PLR0911 - one for each kind
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


def native_default(field: Field, names: Mapping[str, NamedType]) -> Native:
    """The Python value of a field's default, a new one on every call.

    Raises:
        SchemaError: the number is no value of its logical type, such as a date in the year 20000;
            or the defaults of missing fields are nested too deeply or too large.
    """
    try:
        return _Native(names).value(field.type, field.default, 0)
    except (ValueError, ArithmeticError) as error:
        raise SchemaError(f"not a default: {error}", place=f"/fields/{field.name}") from error


class _Native:
    """Conversion of one default to a Python value."""

    def __init__(self, names: Mapping[str, NamedType]) -> None:
        self._names = names
        self._defaults = Defaults(names)
        self._made = 0

    def value(self, avro_type: AvroType, value: Json | Missing, depth: int) -> Native:  # noqa: C901, PLR0911 - one return for each kind
        """Convert a part of the default."""
        self._require_bounds(depth)
        if isinstance(value, Missing):
            raise BrokenInvariantError("a default that was checked lacks a field")
        resolved = self._names[avro_type.name] if isinstance(avro_type, Reference) else avro_type
        match resolved:
            case Primitive():
                return _native_primitive(resolved, value)
            case FixedType(logical=Logical.DECIMAL, scale=scale):
                return decimal_from_bytes(text_of(value).encode("latin-1"), scale)
            case FixedType():
                return text_of(value).encode("latin-1")
            case EnumType():
                return text_of(value)
            case ArrayType(items):
                return [self.value(items, part, depth + 1) for part in list_of(value)]
            case MapType(values):
                return {
                    key: self.value(values, part, depth + 1)
                    for key, part in object_of(value).items()
                }
            case RecordType(fields=fields):
                given = object_of(value)
                return {
                    f.name: self.value(f.type, given.get(f.name, f.default), depth + 1)
                    for f in fields
                }
            case UnionType(branches):
                for branch in branches:
                    if self._defaults.problem(branch, value) is None:
                        return self.value(branch, value, depth)
                raise BrokenInvariantError("a default that was checked fits no branch of its union")

    def _require_bounds(self, depth: int) -> None:
        self._made += 1
        if depth > MAX_DEPTH or self._made > VALUES_MAX:
            raise ValueError(
                f"with the defaults of missing fields it is more than {MAX_DEPTH} deep, "
                f"or more than {VALUES_MAX:,} values"
            )


def _native_primitive(primitive: Primitive, value: Json) -> Native:
    match primitive:
        case Primitive(Kind.BYTES, Logical.DECIMAL, _, scale):
            return decimal_from_bytes(text_of(value).encode("latin-1"), scale)
        case Primitive(Kind.BYTES):
            return text_of(value).encode("latin-1")
        case Primitive(Kind.FLOAT | Kind.DOUBLE):
            if isinstance(value, int | float):
                return float(value)
        case Primitive(Kind.STRING, Logical.UUID):
            return UUID(text_of(value))
        case Primitive(logical=Logical() as logical):
            return from_avro_number(logical, number_of(value))
    return value if isinstance(value, bool | int | str) else None
