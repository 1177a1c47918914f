"""Avro type tree: the result of `schemas.avro.parse`.

Names are full names. The first use of a named type is its definition, every later one is a
`Reference`, which `AvroSchema.resolve` follows. Trees are immutable, and compared by identity where
speed matters; recursive schemas need no special treatment.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from schemas.json_value import Json

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
MAX_SHOWN = 60
"""Limit of characters of a value in a message, so that it fits on one line."""


class Kind(Enum):
    """Avro's kinds of types; the value is the name in a schema text."""

    NULL = "null"
    BOOLEAN = "boolean"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    BYTES = "bytes"
    STRING = "string"
    ARRAY = "array"
    MAP = "map"
    UNION = "union"
    FIXED = "fixed"
    ENUM = "enum"
    RECORD = "record"

    def __str__(self) -> str:
        return self.value


PRIMITIVES: Mapping[str, Kind] = {
    kind.value: kind
    for kind in (
        Kind.NULL,
        Kind.BOOLEAN,
        Kind.INT,
        Kind.LONG,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.BYTES,
        Kind.STRING,
    )
}


class Logical(Enum):
    """The supported logical types; others are read as their underlying type."""

    DECIMAL = "decimal"
    UUID = "uuid"
    DATE = "date"
    TIME_MILLIS = "time-millis"
    TIME_MICROS = "time-micros"
    TIMESTAMP_MILLIS = "timestamp-millis"
    TIMESTAMP_MICROS = "timestamp-micros"
    LOCAL_TIMESTAMP_MILLIS = "local-timestamp-millis"
    LOCAL_TIMESTAMP_MICROS = "local-timestamp-micros"


class Missing(Enum):
    """Marks a field without a default, which differs from the default null."""

    MISSING = "missing"


MISSING = Missing.MISSING


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type without parts. `precision` and `scale` belong to the logical type decimal."""

    kind: Kind
    logical: Logical | None = None
    precision: int = 0
    scale: int = 0


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of values of one type."""

    items: "AvroType"
    kind: ClassVar[Kind] = Kind.ARRAY


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from strings to values of one type."""

    values: "AvroType"
    kind: ClassVar[Kind] = Kind.MAP


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of several types; never directly a union itself, never two of the same kind or name."""

    branches: tuple["AvroType", ...]
    kind: ClassVar[Kind] = Kind.UNION


@dataclass(frozen=True, slots=True)
class FixedType:
    """A fixed number of bytes. `precision` and `scale` belong to the logical type decimal."""

    name: str
    aliases: tuple[str, ...]
    size: int
    logical: Logical | None = None
    precision: int = 0
    scale: int = 0
    kind: ClassVar[Kind] = Kind.FIXED


@dataclass(frozen=True, slots=True)
class EnumType:
    """One of a list of symbols. A reader replaces unknown symbols by `default`."""

    name: str
    aliases: tuple[str, ...]
    symbols: tuple[str, ...]
    default: str | None = None
    kind: ClassVar[Kind] = Kind.ENUM


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record. `default` is the JSON value of the schema text, or `MISSING`."""

    name: str
    aliases: tuple[str, ...]
    type: "AvroType"
    default: Json | Missing
    doc: str = ""


@dataclass(frozen=True, slots=True)
class RecordType:
    """A record: named fields in order."""

    name: str
    aliases: tuple[str, ...]
    fields: tuple[Field, ...]
    doc: str = ""
    kind: ClassVar[Kind] = Kind.RECORD


@dataclass(frozen=True, slots=True)
class Reference:
    """A named type that is defined elsewhere in the same schema."""

    name: str


NamedType = FixedType | EnumType | RecordType
ResolvedType = Primitive | ArrayType | MapType | UnionType | FixedType | EnumType | RecordType
AvroType = ResolvedType | Reference


def describe(avro_type: AvroType) -> str:  # noqa: C901, PLR0911 - one case for each kind
    """A type in few words, for messages: `int`, `record tolls.Toll`, `union of null and long`."""
    match avro_type:
        case Primitive(kind, None):
            return kind.value
        case Primitive(kind, Logical.DECIMAL as logical, precision, scale):
            return f"{kind} ({logical.value} {precision},{scale})"
        case Primitive(kind, logical):
            return f"{kind} ({logical.value})" if logical else kind.value
        case ArrayType(items):
            return f"array of {describe(items)}"
        case MapType(values):
            return f"map of {describe(values)}"
        case UnionType(()):
            return "union of nothing"
        case UnionType(branches):
            return f"union of {' and '.join(describe(branch) for branch in branches)}"
        case FixedType(name, size=size):
            return f"fixed {name} of {size} bytes"
        case EnumType(name):
            return f"enum {name}"
        case RecordType(name):
            return f"record {name}"
        case Reference(name):
            return name


def shown(value: object) -> str:
    """A value from a schema or a record, short enough for a message."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
