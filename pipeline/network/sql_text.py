"""Text of Spark SQL, without ambiguity.

Generated SQL is parsed by Spark again, so every name is back-quoted and every string is escaped. A
dollar sign is written as an escape as well: Spark replaces `${name}` even inside strings.
"""

from decimal import Decimal

from pipeline.network.model import ColumnRef
from pipeline.network.types import DataType

_PRINTABLE_FIRST, _PRINTABLE_LAST = " ", "~"
_BASIC_PLANE = 0xFFFF


def quoted(name: str) -> str:
    """A column or field name in back-quotes."""
    return "`" + name.replace("`", "``") + "`"


def column(ref: ColumnRef) -> str:
    """A column, qualified by its side in a join."""
    return f"{quoted(ref.side)}.{quoted(ref.name)}" if ref.side else quoted(ref.name)


def string(value: str) -> str:
    r"""A string literal in plain ASCII.

    >>> print(string("it's ${x}"))
    'it\'s \u0024{x}'
    """
    return "'" + "".join(_escaped(character) for character in value) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if _PRINTABLE_FIRST <= character <= _PRINTABLE_LAST and character != "$":
        return character
    if ord(character) > _BASIC_PLANE:
        return f"\\U{ord(character):08x}"
    return f"\\u{ord(character):04x}"


def long(value: int) -> str:
    """A BIGINT literal."""
    return f"({value}L)" if value < 0 else f"{value}L"


def integer(value: int) -> str:
    """An INT literal."""
    return f"({value})" if value < 0 else str(value)


def decimal(value: Decimal) -> str:
    """A DECIMAL literal with exactly the digits of `value`."""
    text = f"{value:f}BD"
    return f"({text})" if value < 0 else text


def double(value: float) -> str:
    """A DOUBLE literal; `value` is finite."""
    text = f"{value!r}D"
    return f"({text})" if text.startswith("-") else text


def float32(value: float) -> str:
    """A FLOAT literal; `value` is finite."""
    text = f"{value!r}F"
    return f"({text})" if text.startswith("-") else text


def cast(sql: str, to: DataType) -> str:
    """A cast that never fails."""
    return f"CAST({sql} AS {to})"


def try_cast(sql: str, to: DataType) -> str:
    """A cast that returns null where a plain one would raise."""
    return f"try_cast({sql} AS {to})"
