"""Casts between types by ANSI rules; others are left to Spark."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import ROUND_DOWN, Decimal

from pipeline.network.coercion import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    is_floating,
    is_integral,
)
from pipeline.network.evaluating.failing import LeftToSparkError, RowFailedError
from pipeline.network.evaluating.numbers import EXACT, single, with_digits, within
from pipeline.network.evaluating.values import Value
from pipeline.network.term import FaultError
from pipeline.network.types import DataType, DecimalType, Scalar

Cast = Callable[..., Value]
"""From a non-null value."""

DAY_MICROS = 86_400_000_000
SECOND_MICROS = 1_000_000
DAYS_SAFE = 100_000_000
"""Days from 1970 within which a date can be cast to a timestamp; a box fails beyond, too."""
_WHOLE = re.compile(r"[+-]?[0-9]+")
_BLANK = "".join(map(chr, (*range(0x21), 0x7F)))
"""Characters that Spark trims around a number in a text."""
_EXACT_IN_DOUBLE = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def cast(source: DataType, to: DataType) -> Cast:
    """The conversion of a value to another type.

    Raises:
        FaultError: only Spark implements this cast.
    """
    if source == to or source is Scalar.NULL:
        return lambda value: value
    found = None
    if isinstance(to, DecimalType):
        found = _to_decimal(source, to)
    elif is_integral(to):
        found = _to_whole(source, to)
    elif is_floating(to):
        found = _to_fraction(source, to)
    elif to is Scalar.STRING:
        found = _TO_TEXT.get(source) or ("{:f}".format if isinstance(source, DecimalType) else None)
    elif to is Scalar.BOOLEAN and source is not Scalar.STRING:
        found = bool
    else:
        found = _OTHERS.get((source, to))
    if found is None:
        raise FaultError(
            f"a cast of {source} to {to} is not computed here",
            hint="a map box in a network can do it.",
        )
    return found


def _to_decimal(source: DataType, to: DecimalType) -> Cast | None:
    if isinstance(source, DecimalType) or is_integral(source) or source is Scalar.BOOLEAN:
        return lambda value: with_digits(Decimal(value), to)
    return None


def _to_whole(source: DataType, to: DataType) -> Cast | None:
    if is_integral(source) or source is Scalar.BOOLEAN:
        return lambda value: within(int(value), to)
    if isinstance(source, DecimalType):
        return lambda value: within(int(value.to_integral_value(ROUND_DOWN, EXACT)), to)
    if is_floating(source):
        return lambda value: _cut(value, to)
    if source is Scalar.STRING:
        return lambda value: _whole_of_text(value, to)
    if source is Scalar.TIMESTAMP:
        return lambda value: within(value // SECOND_MICROS, to)
    return None


def _cut(value: float, to: DataType) -> int:
    """Without its fraction; the number just beyond BIGINT becomes the greatest BIGINT."""
    low, high = (INT_MIN, INT_MAX) if to is Scalar.INT else (LONG_MIN, LONG_MAX)
    if not math.isfinite(value) or math.floor(value) > float(high) or math.ceil(value) < low:
        raise RowFailedError(f"{value} does not fit into {to}")
    return min(int(value), high)


def _whole_of_text(value: str, to: DataType) -> int:
    trimmed = value.strip(_BLANK)
    if not _WHOLE.fullmatch(trimmed):
        raise RowFailedError(f"{value!r} is no {to}")
    return within(int(trimmed), to)


def _to_fraction(source: DataType, to: DataType) -> Cast | None:
    if to is Scalar.DOUBLE and (is_integral(source) or source in (Scalar.BOOLEAN, Scalar.FLOAT)):
        return float
    if to is Scalar.DOUBLE and isinstance(source, DecimalType):
        return float
    if to is Scalar.FLOAT and (source in (Scalar.DOUBLE, Scalar.BOOLEAN) or is_integral(source)):
        return _single
    return None


def _single(value: float) -> float:
    if isinstance(value, int) and abs(value) > _EXACT_IN_DOUBLE:
        raise LeftToSparkError(f"{value} as FLOAT")
    return single(float(value))


def _time_text(micros: int) -> str:
    moment = _moment(micros)
    text = f"{moment:%Y-%m-%d %H:%M:%S}".rjust(19, "0")
    fraction = f"{micros % SECOND_MICROS:06}".rstrip("0")
    return f"{text}.{fraction}" if fraction else text


def _day_text(days: int) -> str:
    return _moment(days * DAY_MICROS).date().isoformat()


def _moment(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        raise LeftToSparkError("a time outside of the years 1 to 9999 as text") from None


def _midnight(days: int) -> int:
    if abs(days) > DAYS_SAFE:
        raise RowFailedError(f"day {days} from 1970 does not fit into TIMESTAMP")
    return days * DAY_MICROS


_TO_TEXT: dict[DataType, Cast] = {
    Scalar.INT: str,
    Scalar.LONG: str,
    Scalar.BOOLEAN: lambda value: "true" if value else "false",
    Scalar.TIMESTAMP: _time_text,
    Scalar.DATE: _day_text,
}
_OTHERS: dict[tuple[DataType, DataType], Cast] = {
    (Scalar.STRING, Scalar.BYTES): str.encode,
    (Scalar.TIMESTAMP, Scalar.DATE): lambda value: value // DAY_MICROS,
    (Scalar.DATE, Scalar.TIMESTAMP): _midnight,
}
