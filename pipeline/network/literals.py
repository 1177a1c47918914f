"""Literals: numbers with Spark's types, texts, times, and intervals.

An INTERVAL exists only inside an expression. It is lowered to a BIGINT of microseconds, and a time
moved by it to arithmetic on microseconds, which can be guarded.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from math import isfinite

from sqlglot import exp

from pipeline.network import safe, sql_text
from pipeline.network.coercion import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    MAX_PRECISION,
    decimal_of,
    is_integral,
)
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType, DecimalType, Scalar

_FLOAT_MAX = 3.4028234663852886e38
_MICROS_PER_MILLI = 1_000

UNIT_MICROS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": 1_000_000,
    "MINUTE": 60_000_000,
    "HOUR": 3_600_000_000,
    "DAY": 86_400_000_000,
    "WEEK": 7 * 86_400_000_000,
}
"""Units of an INTERVAL. A day has 24 hours: all times are in UTC."""

SUFFIXES = {
    exp.DType.BIGINT: Scalar.LONG,
    exp.DType.DOUBLE: Scalar.DOUBLE,
    exp.DType.FLOAT: Scalar.FLOAT,
}
"""Number suffixes `L`, `D`, `F` as sqlglot returns them."""


def number(text: str, *, negative: bool) -> Term:
    """A number literal: `1` INT, `3000000000` BIGINT, `1.5` DECIMAL(2,1), `1e3` DOUBLE."""
    sign = "-" if negative else ""
    if "e" in text.lower():
        return floating(_parsed(sign + text), Scalar.DOUBLE)
    if "." in text:
        return exact(sign + text)
    value = int(sign + text)
    if INT_MIN <= value <= INT_MAX:
        return Term(sql_text.integer(value), Scalar.INT, constant=value)
    if LONG_MIN <= value <= LONG_MAX:
        return Term(sql_text.long(value), Scalar.LONG, constant=value)
    return exact(sign + text)


def suffixed(text: str, to: Scalar, *, negative: bool) -> Term:
    """A number with the suffix `L`, `D` or `F`."""
    sign = "-" if negative else ""
    if to is not Scalar.LONG:
        return floating(_parsed(sign + text), to)
    value = int(sign + text) if text.isdigit() else LONG_MAX + 1
    if not LONG_MIN <= value <= LONG_MAX:
        raise FaultError(f"{sign}{text}L is no BIGINT")
    return Term(sql_text.long(value), Scalar.LONG, constant=value)


def _parsed(text: str) -> float:
    """The value of a literal; rejects `1e`, which the grammar accepts."""
    try:
        return float(text)
    except ValueError as error:
        raise FaultError(f"{text} is no number", hint="write 1e3") from error


def floating(value: float, data_type: Scalar) -> Term:
    """A FLOAT or DOUBLE literal."""
    if not isfinite(value) or (data_type is Scalar.FLOAT and abs(value) > _FLOAT_MAX):
        raise FaultError(f"the number does not fit into {data_type}")
    write = sql_text.float32 if data_type is Scalar.FLOAT else sql_text.double
    return Term(write(value), data_type, constant=value)


def exact(text: str) -> Term:
    """A DECIMAL literal."""
    try:
        value = Decimal(text)
    except InvalidOperation as error:
        raise FaultError(f"{text} is no number") from error
    data_type = decimal_of(value)
    if data_type.precision > MAX_PRECISION:
        raise FaultError(f"a number with more than {MAX_PRECISION} digits")
    return Term(sql_text.decimal(value), data_type, constant=value)


def text(value: str) -> Term:
    """A STRING literal."""
    return Term(sql_text.string(value), Scalar.STRING, constant=value)


def boolean(*, value: bool) -> Term:
    """TRUE or FALSE."""
    return Term("true" if value else "false", Scalar.BOOLEAN, constant=value)


def timestamp(value: str) -> Term:
    """`TIMESTAMP '…'`; UTC unless it names an offset."""
    found = micros(value)
    return Term(
        f"timestamp_micros({sql_text.long(found)})",
        Scalar.TIMESTAMP,
        millis=found % _MICROS_PER_MILLI == 0,
    )


def micros(value: str) -> int:
    """A time's microseconds since 1970; UTC unless it names an offset.

    Raises:
        FaultError: it is not a time.
    """
    try:
        instant = datetime.fromisoformat(value.strip())
    except ValueError as error:
        raise FaultError(
            f"{value!r} is no time", hint="write TIMESTAMP '2024-01-31 12:00:00'"
        ) from error
    utc = instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    since = utc - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def day(value: str) -> Term:
    """`DATE '…'`."""
    return Term(f"DATE '{_date(value).isoformat()}'", Scalar.DATE)


def days(value: str) -> int:
    """A date's days since 1970.

    Raises:
        FaultError: it is not a date.
    """
    return (_date(value) - date(1970, 1, 1)).days


def _date(value: str) -> date:
    try:
        return date.fromisoformat(value.strip())
    except ValueError as error:
        raise FaultError(f"{value!r} is no date", hint="write DATE '2024-01-31'") from error


# --- lengths of time ----------------------------------------------------------------------------


def interval(amount: str, unit: str) -> Term:
    """`INTERVAL 1 MINUTE`: a literal whole number of a unit of fixed length."""
    name = unit.upper().removesuffix("S")
    if name in ("MONTH", "YEAR", "QUARTER"):
        raise FaultError(
            f"INTERVAL … {unit.upper()} is refused: its length is not fixed",
            hint="say it in days, or use add_months(date, n)",
        )
    if name not in UNIT_MICROS:
        raise FaultError(f"INTERVAL has no unit {unit}", choices=tuple(UNIT_MICROS))
    try:
        length = Decimal(amount) * UNIT_MICROS[name]
    except InvalidOperation as error:
        raise FaultError(
            f"INTERVAL needs a literal number, not {amount!r}", hint="write INTERVAL 5 MINUTES"
        ) from error
    if length != length.to_integral_value() or abs(length) > LONG_MAX:
        raise FaultError(f"INTERVAL {amount} {unit} is no whole number of microseconds in range")
    return _interval(int(length))


def _interval(length: int) -> Term:
    return Term(
        sql_text.long(length),
        Scalar.INTERVAL,
        constant=length,
        millis=length % _MICROS_PER_MILLI == 0,
    )


def combine(operator: str, left: Term, right: Term) -> Term | None:
    """`+ - * /` with a time or an interval in it; None: neither side is one.

    Raises:
        FaultError: the combination is undefined.
    """
    kinds = (left.type, right.type)
    if not {Scalar.INTERVAL, Scalar.TIMESTAMP, Scalar.DATE} & set(kinds):
        return None
    if operator == "+" and kinds == (Scalar.INTERVAL, Scalar.TIMESTAMP):
        left, right, kinds = right, left, kinds[::-1]
    if kinds == (Scalar.TIMESTAMP, Scalar.INTERVAL) and operator in "+-":
        return _moved(operator, left, right)
    if kinds == (Scalar.TIMESTAMP, Scalar.TIMESTAMP) and operator == "-":
        args = [left, right]
        sql = f"try_subtract(unix_micros({left.sql}), unix_micros({right.sql}))"
        made = safe.attempt(sql, Scalar.INTERVAL, args)
        return replace(made, millis=left.millis and right.millis)
    if kinds == (Scalar.INTERVAL, Scalar.INTERVAL) and operator in "+-":
        return _interval_sum(operator, left, right)
    if operator == "*" and Scalar.INTERVAL in kinds and any(is_integral(k) for k in kinds):
        made = safe.attempt(
            f"try_multiply({left.sql}, {right.sql})", Scalar.INTERVAL, [left, right]
        )
        return replace(made, millis=left.millis or right.millis)
    raise FaultError(
        f"{left.type} {operator} {right.type} means nothing", hint=_hint(operator, kinds)
    )


def _moved(operator: str, time: Term, by: Term) -> Term:
    name = safe.TRY_FORMS[operator]
    sql = f"timestamp_micros({name}(unix_micros({time.sql}), {by.sql}))"
    return replace(
        safe.attempt(sql, Scalar.TIMESTAMP, [time, by]), millis=time.millis and by.millis
    )


def _interval_sum(operator: str, left: Term, right: Term) -> Term:
    if isinstance(left.constant, int) and isinstance(right.constant, int):
        signed = right.constant if operator == "+" else -right.constant
        if abs(left.constant + signed) > LONG_MAX:
            raise FaultError("the INTERVAL is too long")
        return _interval(left.constant + signed)
    name = safe.TRY_FORMS[operator]
    made = safe.attempt(f"{name}({left.sql}, {right.sql})", Scalar.INTERVAL, [left, right])
    return replace(made, millis=left.millis and right.millis)


def _hint(operator: str, kinds: Sequence[DataType]) -> str:
    if Scalar.DATE in kinds:
        return "use date_add(date, days), datediff(end, start), or to_timestamp(date)"
    if Scalar.TIMESTAMP in kinds and operator in "+-":
        return "write + INTERVAL 5 MINUTES, or calculate with unix_millis(…)"
    return "unix_millis(…) makes a number of a time"


# --- types by name ------------------------------------------------------------------------------

_TYPES = {
    exp.DType.BOOLEAN: Scalar.BOOLEAN,
    exp.DType.INT: Scalar.INT,
    exp.DType.BIGINT: Scalar.LONG,
    exp.DType.FLOAT: Scalar.FLOAT,
    exp.DType.DOUBLE: Scalar.DOUBLE,
    exp.DType.TEXT: Scalar.STRING,
    exp.DType.BINARY: Scalar.BYTES,
    exp.DType.VARBINARY: Scalar.BYTES,
    exp.DType.DATE: Scalar.DATE,
    exp.DType.TIMESTAMP: Scalar.TIMESTAMP,
    exp.DType.TIMESTAMPTZ: Scalar.TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: Scalar.TIMESTAMP,
}


def named_type(node: exp.Expr | None) -> DataType:
    """The type that a CAST names.

    Raises:
        FaultError: there is no such cast.
    """
    kind = node.this if isinstance(node, exp.DataType) else None
    if isinstance(node, exp.DataType) and kind is exp.DType.DECIMAL:
        return _decimal_type([str(p.this) for p in node.expressions])
    if kind in _TYPES and isinstance(node, exp.DataType) and not node.expressions:
        return _TYPES[kind]
    shown = node.sql("spark") if node is not None else "nothing"
    names = [str(t) for t in dict.fromkeys(_TYPES.values())]
    raise FaultError(f"cannot cast to {shown}", choices=(*names, "DECIMAL(p,s)"))


def _decimal_type(params: Sequence[str]) -> DecimalType:
    numbers = [int(p) for p in params if p.isdigit()]
    precision, scale = (*numbers, *(10, 0)[len(numbers) :])[:2]
    if len(numbers) != len(params) or not 0 <= scale <= precision <= MAX_PRECISION or not precision:
        raise FaultError(
            f"DECIMAL({', '.join(params)}) is no type",
            hint="DECIMAL(p,s) has 1 to 38 digits, s of them behind the point",
        )
    return DecimalType(precision, scale)
