"""Functions of dates and times, all in UTC."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.network import safe, sql_text
from pipeline.network.coercion import LONG_MAX
from pipeline.network.function_rules import (
    Function,
    Rule,
    checked,
    day,
    literal_text,
    plain,
    small,
    text,
    time,
    whole,
)
from pipeline.network.patterns import check_time_format
from pipeline.network.term import FaultError, Term
from pipeline.network.types import Scalar

TRUNCATE_UNITS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
)

_SAFE_MICROS = -9_200_000_000_000_000_000
"""Truncating earlier times may overflow: the first 700 years of the 292,000 before 1970."""

_DATE_LIMIT_MONTHS = 1_000_000
_SAFE_DATE_DAYS = 100_000_000

PARTS = {
    "year": "the year",
    "quarter": "the quarter, 1 to 4",
    "month": "the month, 1 to 12",
    "weekofyear": "the ISO week, 1 to 53",
    "dayofyear": "the day of the year, 1 to 366",
    "dayofmonth": "the day of the month, 1 to 31",
    "dayofweek": "the day of the week, 1 is Sunday",
    "weekday": "the day of the week, 0 is Monday",
    "hour": "the hour, 0 to 23",
    "minute": "the minute, 0 to 59",
    "second": "the second, 0 to 59",
}
_CLOCK_PARTS = ("hour", "minute", "second")
_ALSO = {"dayofmonth": ("day",), "weekofyear": ("week",)}


def _date_trunc(args: Sequence[Term]) -> Term:
    _, value = checked(args, [text, time])
    unit = literal_text(args[0], "argument 1").lower()
    if unit not in TRUNCATE_UNITS:
        raise FaultError(f"{unit!r} is not a unit of time", choices=TRUNCATE_UNITS)
    inside = f"unix_micros({value.sql}) >= {_SAFE_MICROS}"
    sql = f"(CASE WHEN {inside} THEN date_trunc('{unit}', {value.sql}) END)"
    made = safe.strict(sql, Scalar.TIMESTAMP, [value], own=f"(NOT coalesce({inside}, true))")
    return replace(made, millis=True)


def _from_number(name: str, per_second: int) -> Rule:
    """`timestamp_seconds` and `timestamp_millis` multiply, which can overflow."""

    def rule(args: Sequence[Term]) -> Term:
        (value,) = checked(args, [whole])
        most = LONG_MAX // (1_000_000 // per_second)
        inside = f"{value.sql} BETWEEN -{most} AND {most}"
        sql = f"(CASE WHEN {inside} THEN {name}({value.sql}) END)"
        own = None if isinstance(value.constant, int) else f"(NOT coalesce({inside}, true))"
        return replace(safe.strict(sql, Scalar.TIMESTAMP, [value], own=own), millis=True)

    return rule


def _parse(name: str, result: Scalar, *, swallow: bool) -> Rule:
    """`to_timestamp` and `to_date` of a text; of a time or date they are casts."""

    def rule(args: Sequence[Term]) -> Term:
        if len(args) == 1 and args[0].type in (Scalar.TIMESTAMP, Scalar.DATE):
            made = safe.cast(args[0], result)
            return replace(made, millis=args[0].millis or args[0].type is Scalar.DATE)
        given = checked(args, [text, text], optional=1)
        extra = ""
        if len(args) > 1:
            pattern = literal_text(args[1], "argument 2")
            check_time_format(pattern, parsing=True)
            extra = f", {sql_text.string(pattern)}"
        sql = f"{name}({given[0].sql}{extra})"
        if swallow:
            return safe.strict(sql, result, given[:1], nullable=True)
        return safe.attempt(sql, result, given[:1])

    return rule


def _date_format(args: Sequence[Term]) -> Term:
    value, _ = checked(args, [time, text])
    pattern = literal_text(args[1], "argument 2")
    check_time_format(pattern, parsing=False)
    return safe.strict(
        f"date_format({value.sql}, {sql_text.string(pattern)})", Scalar.STRING, [value]
    )


def _add_months(args: Sequence[Term]) -> Term:
    value, months = checked(args, [day, small])
    inside = (
        f"({months.sql} BETWEEN -{_DATE_LIMIT_MONTHS} AND {_DATE_LIMIT_MONTHS}"
        f" AND unix_date({value.sql}) BETWEEN -{_SAFE_DATE_DAYS} AND {_SAFE_DATE_DAYS})"
    )
    sql = f"(CASE WHEN {inside} THEN add_months({value.sql}, {months.sql}) END)"
    return safe.strict(sql, Scalar.DATE, [value, months], own=f"(NOT coalesce({inside}, true))")


def _part(name: str) -> Function:
    kind, argument = (time, "time") if name in _CLOCK_PARTS else (day, "date or time")
    rule = plain(Scalar.INT, name + "({0})", kind)
    return Function(name, f"{name}({argument})", "INT", PARTS[name], rule, also=_ALSO.get(name, ()))


def _unix(name: str, unit: str) -> Function:
    rule = plain(Scalar.LONG, name + "({0})", time)
    return Function(name, f"{name}(time)", "BIGINT", f"{unit} since 1970-01-01 UTC", rule)


TABLE: tuple[Function, ...] = (
    Function(
        "date_trunc",
        "date_trunc(unit, time)",
        "TIMESTAMP",
        f"the start of its {', '.join(TRUNCATE_UNITS)}; the unit is a literal",
        _date_trunc,
        fails="the time lies in the first 700 years that can be held, before 289,000 BC",
    ),
    *(_part(name) for name in PARTS),
    _unix("unix_seconds", "whole seconds"),
    _unix("unix_millis", "whole milliseconds"),
    _unix("unix_micros", "microseconds"),
    Function(
        "timestamp_seconds",
        "timestamp_seconds(whole number)",
        "TIMESTAMP",
        "so many seconds since 1970-01-01 UTC",
        _from_number("timestamp_seconds", 1),
        fails="it does not fit",
    ),
    Function(
        "timestamp_millis",
        "timestamp_millis(whole number)",
        "TIMESTAMP",
        "so many milliseconds since 1970-01-01 UTC",
        _from_number("timestamp_millis", 1_000),
        fails="it does not fit",
    ),
    Function(
        "timestamp_micros",
        "timestamp_micros(whole number)",
        "TIMESTAMP",
        "so many microseconds since 1970-01-01 UTC",
        plain(Scalar.TIMESTAMP, "timestamp_micros({0})", whole),
    ),
    Function(
        "to_timestamp",
        "to_timestamp(text [, format])",
        "TIMESTAMP",
        "a text as a time, in a literal format (else as 2024-01-31 12:00:00 or ISO 8601)",
        _parse("try_to_timestamp", Scalar.TIMESTAMP, swallow=False),
        fails="the text is no such time",
    ),
    Function(
        "try_to_timestamp",
        "try_to_timestamp(text [, format])",
        "TIMESTAMP",
        "the same, null where it fails",
        _parse("try_to_timestamp", Scalar.TIMESTAMP, swallow=True),
    ),
    Function(
        "to_date",
        "to_date(text [, format])",
        "DATE",
        "a text as a date, in a literal format (else as 2024-01-31)",
        _parse("try_to_date", Scalar.DATE, swallow=False),
        fails="the text is no such date",
    ),
    Function(
        "try_to_date",
        "try_to_date(text [, format])",
        "DATE",
        "the same, null where it fails",
        _parse("try_to_date", Scalar.DATE, swallow=True),
    ),
    Function(
        "date",
        "date(time or text)",
        "DATE",
        "the day, in UTC",
        lambda args: safe.cast(checked(args, [lambda term: term])[0], Scalar.DATE),
        fails="the text is no date",
    ),
    Function(
        "date_format",
        "date_format(time, format)",
        "STRING",
        "a time as text, in a literal format such as yyyy-MM-dd",
        _date_format,
    ),
    Function(
        "date_add",
        "date_add(date, days)",
        "DATE",
        "so many days later",
        plain(Scalar.DATE, "date_add({0}, {1})", day, small),
    ),
    Function(
        "date_sub",
        "date_sub(date, days)",
        "DATE",
        "so many days earlier",
        plain(Scalar.DATE, "date_sub({0}, {1})", day, small),
    ),
    Function(
        "add_months",
        "add_months(date, months)",
        "DATE",
        "so many months later, at the latest on the last day of the month",
        _add_months,
        fails="it is out of reach: a million months, or some 270,000 years from 1970",
    ),
    Function(
        "datediff",
        "datediff(end, start)",
        "INT",
        "the days between two dates",
        plain(Scalar.INT, "datediff({0}, {1})", day, day),
        also=("date_diff",),
    ),
    Function(
        "unix_date",
        "unix_date(date)",
        "INT",
        "days since 1970-01-01",
        plain(Scalar.INT, "unix_date({0})", day),
    ),
)
"""Every function of dates and times."""
