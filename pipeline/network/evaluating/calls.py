"""Functions that Python computes exactly as Spark does; the others are left to Spark."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from pipeline.network.coercion import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN
from pipeline.network.evaluating.casting import DAY_MICROS, SECOND_MICROS
from pipeline.network.evaluating.comparing import equal
from pipeline.network.evaluating.failing import LeftToSparkError, RowFailedError
from pipeline.network.evaluating.values import Value
from pipeline.network.function_rules import (
    Kind,
    anything,
    day,
    number,
    small,
    text,
    time,
    whole,
)

_MILLI_MICROS = 1_000
_CASE_MAX = 0x530
"""Characters below have the same capitals in the Unicode of every Java that runs Spark."""
_SIGMA = "Σ"
"""Its lower case depends on its position in a word."""
_CUT_SAFE = -9_200_000_000_000_000_000
"""Earlier times cannot be truncated to a unit; in a box that fails, too."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that is null if an argument is.

    Args:
        compute: from non-null arguments.
        kinds: types that the arguments are converted to.
        optional: how many of the last may be omitted.
    """

    compute: Callable[..., Value]
    kinds: tuple[Kind, ...]
    optional: int = 0


# --- text ---------------------------------------------------------------------------------------


def _cased(value: str) -> str:
    if any(ord(letter) >= _CASE_MAX for letter in value) or _SIGMA in value:
        raise LeftToSparkError("capital and small letters of this alphabet")
    return value


def lower(value: str) -> str:
    """A text in lower case."""
    return _cased(value).lower()


def _upper(value: str) -> str:
    return _cased(value).upper()


def _substring(value: str, start: int, length: int = INT_MAX) -> str:
    """The part from a character on, counted from 1, or from the end if negative."""
    first = start - 1 if start > 0 else len(value) + start if start < 0 else 0
    return value[max(0, first) : max(0, first + length)]


def _left(value: str, count: int) -> str:
    return value[: max(0, count)]


def _right(value: str, count: int) -> str:
    return value[-count:] if count > 0 else ""


def _replace(value: str, old: str, new: str = "") -> str:
    return value.replace(old, new) if old else value


# --- numbers ------------------------------------------------------------------------------------


def _rounded(towards: str) -> Callable[[Decimal | float], Decimal | int]:
    plain = math.floor if towards is ROUND_FLOOR else math.ceil

    def compute(value: Decimal | float) -> Decimal | int:
        if isinstance(value, Decimal):
            found = value.to_integral_value(towards)
            return found or abs(found)  # there is no -0
        if isinstance(value, int):
            return value
        if math.isnan(value):
            return 0
        if math.isinf(value):
            return LONG_MAX if value > 0 else LONG_MIN
        return max(LONG_MIN, min(LONG_MAX, plain(value)))

    return compute


# --- dates and times ----------------------------------------------------------------------------


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a day since 1970, in years of any size."""
    # Cycles of 400 years that begin with a March, so that a leap day is the last of its year.
    cycle, within_cycle = divmod(days + 719_468, 146_097)
    year = (
        within_cycle - within_cycle // 1_460 + within_cycle // 36_524 - within_cycle // 146_096
    ) // 365
    within_year = within_cycle - (365 * year + year // 4 - year // 100)
    shifted = (5 * within_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9  # noqa: PLR2004 - March is month 0
    first_of = within_year - (153 * shifted + 2) // 5 + 1
    return year + 400 * cycle + (month <= 2), month, first_of  # noqa: PLR2004 - the next year


def _days_between(end: int, start: int) -> int:
    days = end - start
    if not INT_MIN <= days <= INT_MAX:
        raise LeftToSparkError("days between dates that are too far apart")
    return days


def _clock(unit: int, count: int) -> Callable[[int], int]:
    return lambda micros: micros // unit % count


def _from_number(per_unit: int) -> Callable[[int], int]:
    def compute(value: int) -> int:
        if per_unit > 1 and abs(value) > LONG_MAX // per_unit:
            raise RowFailedError(f"{value} does not fit into TIMESTAMP")
        return value * per_unit

    return compute


UNITS: Mapping[str, int] = {
    "millisecond": _MILLI_MICROS,
    "second": SECOND_MICROS,
    "minute": 60 * SECOND_MICROS,
    "hour": 3_600 * SECOND_MICROS,
    "day": DAY_MICROS,
}
"""Units of `date_trunc` with a fixed length."""


def cut_to(unit: str) -> Callable[[int], int]:
    """`date_trunc` to one of the units."""
    length = UNITS[unit]

    def compute(micros: int) -> int:
        if micros < _CUT_SAFE:
            raise RowFailedError("the time is too early to be cut")
        return micros - micros % length

    return compute


# --- arrays and maps ----------------------------------------------------------------------------


def item(parts: list[Value], index: int) -> Value:
    """`array[n]`, n from 0."""
    if not 0 <= index < len(parts):
        raise RowFailedError(f"index {index} is outside of an array of {len(parts)}")
    return parts[index]


def element(parts: list[Value], index: int) -> Value:
    """`element_at(array, n)`, n from 1, or from the end if negative."""
    if index == 0:
        raise RowFailedError("index 0, where they begin with 1")
    return item(parts, index - 1 if index > 0 else len(parts) + index)


def array_contains(parts: list[Value], wanted: Value) -> bool | None:
    """`array_contains`; null if it is not found and an element is null."""
    if any(part is not None and equal(part, wanted) for part in parts):
        return True
    return None if None in parts else False


CALLS: Mapping[str, Call] = {
    "upper": Call(_upper, (text,)),
    "lower": Call(lower, (text,)),
    "trim": Call(lambda value: value.strip(" "), (text,)),
    "ltrim": Call(lambda value: value.lstrip(" "), (text,)),
    "rtrim": Call(lambda value: value.rstrip(" "), (text,)),
    "reverse": Call(lambda value: value[::-1], (text,)),
    "length": Call(len, (text,)),
    "substring": Call(_substring, (text, small, small), optional=1),
    "left": Call(_left, (text, small)),
    "right": Call(_right, (text, small)),
    "replace": Call(_replace, (text, text, text), optional=1),
    "instr": Call(lambda value, part: value.find(part) + 1, (text, text)),
    "startswith": Call(str.startswith, (text, text)),
    "endswith": Call(str.endswith, (text, text)),
    "contains": Call(lambda value, part: part in value, (text, text)),
    "ceil": Call(_rounded(ROUND_CEILING), (number,)),
    "floor": Call(_rounded(ROUND_FLOOR), (number,)),
    "year": Call(lambda days: _civil(days)[0], (day,)),
    "quarter": Call(lambda days: (_civil(days)[1] + 2) // 3, (day,)),
    "month": Call(lambda days: _civil(days)[1], (day,)),
    "dayofmonth": Call(lambda days: _civil(days)[2], (day,)),
    "dayofweek": Call(lambda days: (days + 4) % 7 + 1, (day,)),
    "weekday": Call(lambda days: (days + 3) % 7, (day,)),
    "hour": Call(_clock(3_600 * SECOND_MICROS, 24), (time,)),
    "minute": Call(_clock(60 * SECOND_MICROS, 60), (time,)),
    "second": Call(_clock(SECOND_MICROS, 60), (time,)),
    "unix_seconds": Call(lambda micros: micros // SECOND_MICROS, (time,)),
    "unix_millis": Call(lambda micros: micros // _MILLI_MICROS, (time,)),
    "unix_micros": Call(lambda micros: micros, (time,)),
    "timestamp_seconds": Call(_from_number(SECOND_MICROS), (whole,)),
    "timestamp_millis": Call(_from_number(_MILLI_MICROS), (whole,)),
    "timestamp_micros": Call(_from_number(1), (whole,)),
    "datediff": Call(_days_between, (day, day)),
    "unix_date": Call(lambda days: days, (day,)),
    "size": Call(len, (anything,)),
}
"""Functions that are null if an argument is, by their first name."""
