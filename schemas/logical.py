"""Logical types: conversion between Avro values and Python values.

| logical type | Avro | Python |
|---|---|---|
| decimal | bytes, fixed | `Decimal` |
| uuid | string | `UUID` |
| date | int, days | `date` |
| time-millis, time-micros | int, long | `time` |
| timestamp-millis, -micros | long | `datetime` in UTC |
| local-timestamp-millis, -micros | long | `datetime` without zone |
"""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import TypeAlias
from uuid import UUID

from schemas.types import Logical

Native: TypeAlias = (
    bool
    | int
    | float
    | str
    | bytes
    | Decimal
    | date
    | time
    | datetime
    | UUID
    | list["Native"]
    | dict[str, "Native"]
    | tuple[str, "Native"]
    | None
)
"""A Python value; a tuple is a union value with its branch's name. Includes all JSON values."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOCAL_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local timestamps have no zone, by definition
EPOCH_DAY = date(1970, 1, 1)
_MIDNIGHT = datetime(1, 1, 1)  # noqa: DTZ001 - only its time of day is used
_DAY_US = 86_400_000_000
_US: dict[Logical, int] = {
    Logical.TIME_MILLIS: 1000,
    Logical.TIME_MICROS: 1,
    Logical.TIMESTAMP_MILLIS: 1000,
    Logical.TIMESTAMP_MICROS: 1,
    Logical.LOCAL_TIMESTAMP_MILLIS: 1000,
    Logical.LOCAL_TIMESTAMP_MICROS: 1,
}
UTC_TIMESTAMPS = frozenset({Logical.TIMESTAMP_MILLIS, Logical.TIMESTAMP_MICROS})
LOCAL_TIMESTAMPS = frozenset({Logical.LOCAL_TIMESTAMP_MILLIS, Logical.LOCAL_TIMESTAMP_MICROS})
TIMES = frozenset({Logical.TIME_MILLIS, Logical.TIME_MICROS})


def from_avro_number(logical: Logical, number: int) -> date | time | datetime:
    """A date, time of day or timestamp from the number in Avro.

    Raises:
        ValueError: outside of the years 1 to 9999, or of a day.
    """
    try:
        if logical is Logical.DATE:
            return EPOCH_DAY + timedelta(days=number)
        microseconds = number * _US[logical]
        if logical in TIMES:
            if not 0 <= microseconds < _DAY_US:
                raise ValueError(f"{number} is not within a day")
            return (_MIDNIGHT + timedelta(microseconds=microseconds)).time()
        start = EPOCH if logical in UTC_TIMESTAMPS else LOCAL_EPOCH
        return start + timedelta(microseconds=microseconds)
    except OverflowError as error:
        raise ValueError(f"{number} is outside of the years 1 to 9999") from error


def truncated(logical: Logical, value: datetime | time) -> datetime | time:
    """A time, truncated to the precision of its logical type."""
    unit = _US[logical]
    return value.replace(microsecond=value.microsecond // unit * unit)


def decimal_from_bytes(raw: bytes, scale: int) -> Decimal:
    """A number from big-endian two's complement bytes and a scale."""
    unscaled = int.from_bytes(raw, "big", signed=True)
    # the context's precision must not round: as many digits as the bytes can contain
    return Decimal(unscaled).scaleb(-scale, Context(prec=max(1, 3 * len(raw))))


def decimal_problem(value: Decimal, precision: int, scale: int) -> str:
    """Why a number does not fit a decimal type; empty if it does. It is never rounded."""
    if not value.is_finite():
        return f"{value} is not a finite number"
    _, digits, exponent = value.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    if not significant or not isinstance(exponent, int):
        return ""
    exponent += len(digits) - len(significant)
    if -exponent > scale:
        return f"{value} has more than {scale} digits behind the point"
    if len(significant.lstrip("0")) + exponent > precision - scale:
        return f"{value} has more than {precision - scale} digits before the point"
    return ""


def at_scale(value: Decimal, scale: int) -> Decimal:
    """A number that fits (`decimal_problem`), with the exponent of a scale."""
    if not value:
        return Decimal(0).scaleb(-scale)
    room = len(value.as_tuple().digits) + abs(value.adjusted()) + scale + 2
    return value.quantize(Decimal(1).scaleb(-scale), context=Context(prec=room))


def text_of(value: date | time | datetime | Decimal | UUID) -> str:
    """The text of a value in JSON: RFC 3339 with Z for timestamps, digits without exponent."""
    if isinstance(value, datetime):
        spec = "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
        if value.tzinfo is None:
            return value.isoformat(timespec=spec)
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=spec) + "Z"
    if isinstance(value, date | time):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
