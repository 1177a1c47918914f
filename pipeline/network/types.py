"""Column types: those that both Avro and Spark SQL support.

A type's `str()` is its Spark SQL name, for messages and for Spark alike.
"""

from dataclasses import dataclass
from enum import Enum


class Scalar(Enum):
    """Types without parameters; the value is the Spark SQL name."""

    BOOLEAN = "BOOLEAN"
    INT = "INT"
    LONG = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    STRING = "STRING"
    BYTES = "BINARY"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    INTERVAL = "INTERVAL"
    """An interval inside an expression; never a column of a stream."""
    NULL = "VOID"
    """The type of a bare NULL; never a column of a stream."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class DecimalType:
    """Exact numbers: `precision` digits in all, `scale` of them decimal places."""

    precision: int
    scale: int

    def __str__(self) -> str:
        return f"DECIMAL({self.precision},{self.scale})"


@dataclass(frozen=True, slots=True)
class ArrayType:
    """A list of values of one type."""

    element: "DataType"
    element_nullable: bool

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True, slots=True)
class MapType:
    """A map from strings to values of one type."""

    value: "DataType"
    value_nullable: bool

    def __str__(self) -> str:
        return f"MAP<STRING, {self.value}>"


@dataclass(frozen=True, slots=True)
class StructType:
    """A record inside a record."""

    name: str
    fields: tuple["Column", ...]

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


DataType = Scalar | DecimalType | ArrayType | MapType | StructType


@dataclass(frozen=True, slots=True)
class EnumForm:
    """A text that is written as a symbol of an Avro enum.

    Args:
        name: the full name of the enum; one without a namespace has no dot.
        symbols: the possible values.
        default: the value a reader substitutes for an unknown symbol; None: it fails.
    """

    name: str
    symbols: tuple[str, ...]
    default: str | None = None


@dataclass(frozen=True, slots=True)
class UuidForm:
    """A text that is written with the logical type uuid."""


Form = EnumForm | UuidForm


@dataclass(frozen=True, slots=True)
class Column:
    """One named column of a stream.

    `millis`: a TIMESTAMP of whole milliseconds. Spark's own timestamps count microseconds; this is
    the unit with which a derived stream is written, so that a column read as timestamp-millis is
    written as timestamp-millis, and no other ever loses digits.

    `form`: the written form of a STRING column that was read as an enum or a uuid; None: a string.
    It has no other effect: to expressions such a column is a STRING.
    """

    name: str
    type: DataType
    nullable: bool
    millis: bool = False
    form: Form | None = None

    def __str__(self) -> str:
        return f"{self.name} {self.type}{'' if self.nullable else ' NOT NULL'}"


Columns = tuple[Column, ...]
"""The columns of a stream, in order; names are unique without regard to case, as in Spark."""
