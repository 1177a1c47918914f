"""Parser of column types: `DECIMAL(10,2)`, `ARRAY<STRUCT<a: INT NOT NULL>>`.

>>> str(read("array<decimal(10, 2)>"))
'ARRAY<DECIMAL(10,2)>'
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pipeline.network.coercion import MAX_PRECISION
from pipeline.network.types import (
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)

SCALARS: Final[Mapping[str, Scalar]] = MappingProxyType(
    {s.value: s for s in Scalar if s not in (Scalar.INTERVAL, Scalar.NULL)}
)
KINDS: Final = (*SCALARS, "DECIMAL(p,s)", "ARRAY<type>", "MAP<STRING, type>", "STRUCT<name: type>")
"""The supported types, for messages."""
DEPTH_MAX: Final = 16
_DIGITS: Final = len(str(MAX_PRECISION))

_TOKEN = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[<>(),:])")


class UnknownTypeError(ValueError):
    """A text is not a type; the message says why."""


def read(text: str) -> DataType:
    """The type that a text denotes.

    Raises:
        UnknownTypeError: it denotes none.
    """
    return read_column("", text).type


def read_column(name: str, text: str) -> Column:
    """A column of that name; `NOT NULL` behind the type makes it non-nullable.

    Raises:
        UnknownTypeError: the text is not a type.
    """
    reader = _Reader(text)
    column = reader.column(name, 0)
    reader.end()
    return column


class _Reader:
    """Reads a text from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def column(self, name: str, depth: int) -> Column:
        data_type = self._type(depth)
        nullable = not self._taken("NOT")
        if not nullable and not self._taken("NULL"):
            raise UnknownTypeError("NOT stands without NULL")
        return Column(name, data_type, nullable)

    def end(self) -> None:
        if self._next():
            raise UnknownTypeError(f"{self._next()!r} is too much")
        if self._text[self._at :].strip():
            raise UnknownTypeError(f"{self._text[self._at :].strip()!r} cannot be read")

    def _type(self, depth: int) -> DataType:
        if depth > DEPTH_MAX:
            raise UnknownTypeError(f"types lie more than {DEPTH_MAX} deep in each other")
        word = self._take().upper()
        match word:
            case "DECIMAL":
                return self._decimal()
            case "ARRAY":
                element = self._inside(depth)
                return ArrayType(element.type, element.nullable)
            case "MAP":
                return self._map(depth)
            case "STRUCT":
                return self._struct(depth)
            case _ if word in SCALARS:
                return SCALARS[word]
        raise UnknownTypeError(f"there is no type {word}" if word else "a type is missing")

    def _decimal(self) -> DecimalType:
        self._expect("(")
        digits = [self._take()]
        if self._taken(","):
            digits.append(self._take())
        self._expect(")")
        if all(number.isdigit() and len(number) <= _DIGITS for number in digits):
            precision, scale = int(digits[0]), int(digits[1]) if digits[1:] else 0
            if scale <= precision and 1 <= precision <= MAX_PRECISION:
                return DecimalType(precision, scale)
        raise UnknownTypeError(
            f"DECIMAL(p,s) has 1 to {MAX_PRECISION} digits, s of them behind the point"
        )

    def _map(self, depth: int) -> MapType:
        self._expect("<")
        if self._take().upper() != "STRING":
            raise UnknownTypeError("the keys of a MAP are of type STRING")
        self._expect(",")
        value = self.column("", depth + 1)
        self._expect(">")
        return MapType(value.type, value.nullable)

    def _struct(self, depth: int) -> StructType:
        self._expect("<")
        fields: list[Column] = []
        while not fields or self._taken(","):
            name = self._take()
            if not name.isidentifier():
                raise UnknownTypeError("a field of STRUCT needs a name")
            self._expect(":")
            if name.lower() in (field.name.lower() for field in fields):
                raise UnknownTypeError(f"STRUCT has {name} twice")
            fields.append(self.column(name, depth + 1))
        self._expect(">")
        return StructType("", tuple(fields))

    def _inside(self, depth: int) -> Column:
        self._expect("<")
        column = self.column("", depth + 1)
        self._expect(">")
        return column

    def _next(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        return found[1] if found else ""

    def _take(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[1]

    def _taken(self, word: str) -> bool:
        """Consume a word if it is the next one."""
        if self._next().upper() != word:
            return False
        self._take()
        return True

    def _expect(self, word: str) -> None:
        found = self._take()
        if found != word:
            raise UnknownTypeError(f"{word} is missing" + (f" before {found}" if found else ""))
