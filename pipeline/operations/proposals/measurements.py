"""Measurements of a sample: event time, disorder, longest gap and key of a topic. Pure."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import TypeVar

from pipeline.errors import InputError
from pipeline.network.evaluating.evaluate import Computation, computation
from pipeline.network.evaluating.failing import NoValueError
from pipeline.network.evaluating.values import Value
from pipeline.network.expressions import check
from pipeline.network.scope import Scope, Source
from pipeline.network.streams import AHEAD_MS
from pipeline.network.term import Fault
from pipeline.network.types import Column, Columns, Scalar
from schemas.json_value import Json

T = TypeVar("T")

Values = Mapping[str, Value]
Reading = Callable[[Values], int | None]
"""Event time of the columns of a record, in milliseconds since 1970 UTC; None: it has none."""

_YEAR_2000_MS = 946_684_800_000
_DAY_MS = 86_400_000
_MICROS_PER_MS = 1_000
_NEARLY_ALL = 0.999
_NO_TIME_MS = -(2**63)
"""Marks a text that is no time: it makes the column less plausible and is not measured."""
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)?", re.ASCII)
_TYPICAL = re.compile(
    r"(event|occurr|happen|seen|measur|observ|record|trade|order)\w*(time|at|on|ts)|"
    r"(event_?)?(time|timestamp|ts|at)",
    re.IGNORECASE,
)
"""Names of fields that usually hold an event time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = (("timestamp_millis", 1.0), ("timestamp_seconds", 1e3), ("timestamp_micros", 1e-3))
"""Functions from number to time, and the milliseconds of their units."""


@dataclass(frozen=True, slots=True)
class SampledRecord:
    """One record of the sample.

    Args:
        timestamp_ms: its Kafka timestamp; -1 if it has none.
        key: decoded to JSON; None: it has none.
        values: column values for expressions; None: it could not be decoded, or is empty.
        problem: why it could not be decoded.
    """

    partition: int
    timestamp_ms: int
    key: Json
    values: Values | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EventTime:
    """A candidate for the event time.

    Args:
        origin: a description of what it is computed from.
        missing: number of sampled records without such a time.
        away_ms: median distance from the Kafka timestamp; None: unknown.
    """

    expression: str
    origin: str
    read: Reading
    missing: int = 0
    away_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Disorder:
    """Distribution of the delay behind the maximum event time so far of the partition, in ms."""

    records: int
    nearly_all_ms: int
    largest_ms: int


@dataclass(frozen=True, slots=True)
class Measurements:
    """Measurements of one sample.

    Args:
        others: further expressions that may be the event time, best first.
        disorder: None: no record has an event time.
        gap_ms: the longest time between two records of a partition; None: unknown.
        ahead_ms: 99.9 % quantile of event time minus Kafka timestamp; None: unknown.
        key: the column whose text equals the record's key; None: there is none.
        first_problem: why the first undecoded record could not be decoded.
    """

    records: int
    partitions: int
    undecoded: int
    first_problem: str
    event_time: EventTime
    others: tuple[str, ...]
    disorder: Disorder | None
    gap_ms: int | None
    ahead_ms: int | None
    key: str | None


def measure(
    columns: Columns, seen: Sequence[SampledRecord], event_time: str | None
) -> Measurements:
    """Measure a sample, whose records are in order within each partition.

    Args:
        columns: the columns of the topic's schema.
        seen: the records.
        event_time: the expression for it; None: choose the best candidate.

    Raises:
        InputError: no column can be the event time, or the expression is invalid.
    """
    scope = Scope((Source(columns),))
    good = [one for one in seen if one.values is not None]
    if event_time is not None:
        times = [_given(event_time, scope)]
    else:
        times = sorted(_candidates(columns, scope, good), key=_rank(good))
    if not times:
        fields = ", ".join(f"{column.name} {column.type}" for column in columns)
        raise InputError(
            "no field of the schema can be the event time",
            hint=f"give --event-time EXPRESSION. There is: {fields or 'no column'}.",
        )
    best, *others = (_measured(one, good) for one in times)
    bad = [one for one in seen if one.values is None and one.problem]
    timed = _timed(best, good)
    ahead_ms = _ahead(timed)
    return Measurements(
        records=len(seen),
        partitions=len({one.partition for one in seen}),
        undecoded=len(bad),
        first_problem=bad[0].problem if bad else "",
        event_time=best,
        others=tuple(one.expression for one in others),
        disorder=_disorder(timed, max(AHEAD_MS, ahead_ms or 0)),
        gap_ms=_longest_gap(seen),
        ahead_ms=ahead_ms,
        key=_key(columns, good),
    )


# --- event time ---------------------------------------------------------------------------------


def _given(expression: str, scope: Scope) -> EventTime:
    """Event time by a given expression; measured only if it can be computed without Spark."""
    checked = check(expression, scope, wants=Scalar.TIMESTAMP)
    if checked.expression is None:
        fault = checked.faults[0]
        choices = f"there is: {', '.join(fault.choices)}." if fault.choices else ""
        raise InputError(
            fault.message,
            place=f"--event-time {expression}",
            hint=f"{choices} {fault.hint}".strip(),
        )
    found = computation(expression, scope, wants=Scalar.TIMESTAMP)
    return EventTime(expression, "as it was given", _computed(found))


def _computed(found: Computation | tuple[Fault, ...]) -> Reading:
    def read(values: Values) -> int | None:
        if not isinstance(found, Computation):
            return None
        try:
            micros = found.compute(values)
        except NoValueError:
            return None
        return micros // _MICROS_PER_MS if isinstance(micros, int) else None

    return read


def _candidates(columns: Columns, scope: Scope, good: Sequence[SampledRecord]) -> list[EventTime]:
    """Candidates: TIMESTAMP columns, and numbers and texts that are plausible times."""
    found = []
    for column in columns:
        name = _quoted(column, scope)
        if column.type is Scalar.TIMESTAMP:
            found.append(EventTime(name, "a TIMESTAMP", _field(column.name, int, _of_micros)))
        elif column.type is Scalar.LONG:
            for function, unit_ms in _UNITS:
                read = _field(column.name, int, _of_number(unit_ms))
                if _plausible(read, good):
                    origin = f"a BIGINT that is a time by {function}"
                    found.append(EventTime(f"{function}({name})", origin, read))
        elif column.type is Scalar.STRING:
            read = _field(column.name, str, _of_text)
            if _plausible(read, good):
                found.append(EventTime(f"to_timestamp({name})", "a text that is a time", read))
    return found


def _rank(
    good: Sequence[SampledRecord],
) -> Callable[[EventTime], tuple[bool, bool, bool, bool, int]]:
    """Sort key: plausible, then complete, then TIMESTAMP, then of a typical name."""

    def rank(one: EventTime) -> tuple[bool, bool, bool, bool, int]:
        measured = _measured(one, good)
        name = one.expression.rpartition("(")[2].strip("`)")
        return (
            bool(good) and not _plausible(one.read, good),
            measured.missing > 0,
            "(" in one.expression,
            _TYPICAL.fullmatch(name) is None,
            measured.away_ms or 0,
        )

    return rank


def _measured(one: EventTime, good: Sequence[SampledRecord]) -> EventTime:
    timed = _timed(one, good)
    away = [abs(time - seen.timestamp_ms) for seen, time in timed if seen.timestamp_ms >= 0]
    return EventTime(
        one.expression,
        one.origin,
        one.read,
        missing=len(good) - len(timed),
        away_ms=int(median(away)) if away else None,
    )


def _timed(one: EventTime, good: Sequence[SampledRecord]) -> list[tuple[SampledRecord, int]]:
    """The records that have this event time, with its value."""
    times = ((seen, one.read(seen.values)) for seen in good if seen.values is not None)
    return [(seen, time) for seen, time in times if time is not None and time != _NO_TIME_MS]


def _plausible(read: Reading, good: Sequence[SampledRecord]) -> bool:
    """Whether 99.9 % of the times are after the year 2000, and at most a day after Kafka's."""
    given = [(one, one.values) for one in good if one.values is not None]
    times = [(one, read(values)) for one, values in given]
    there = [(one, time) for one, time in times if time is not None]
    odd = sum(time < _YEAR_2000_MS or 0 <= one.timestamp_ms < time - _DAY_MS for one, time in there)
    return bool(there) and odd <= len(there) - math.ceil(_NEARLY_ALL * len(there))


def _field(name: str, kind: type[T], convert: Callable[[T], int | None]) -> Reading:
    def read(values: Values) -> int | None:
        value = values[name]
        return convert(value) if isinstance(value, kind) else None

    return read


def _of_micros(value: int) -> int:
    return value // _MICROS_PER_MS


def _of_number(unit_ms: float) -> Callable[[int], int]:
    return lambda value: int(value * unit_ms)


def _of_text(value: str) -> int | None:
    """Parse a time in ISO 8601."""
    if not _ISO.fullmatch(value):
        return _NO_TIME_MS
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return _NO_TIME_MS
    utc = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (utc - _EPOCH) // timedelta(milliseconds=1)


def _quoted(column: Column, scope: Scope) -> str:
    """A column's name in expressions: in back-quotes if it is a word of SQL."""
    checked = check(column.name, scope).expression
    plain = checked is not None and checked.plain is not None
    return column.name if plain else f"`{column.name}`"


# --- disorder, gap, key -------------------------------------------------------------------------


def _ahead(timed: Sequence[tuple[SampledRecord, int]]) -> int | None:
    """99.9 % quantile of event time minus Kafka timestamp."""
    ahead = sorted(time - one.timestamp_ms for one, time in timed if one.timestamp_ms >= 0)
    return _quantile(ahead) if ahead else None


def _disorder(timed: Sequence[tuple[SampledRecord, int]], reach_ms: int) -> Disorder | None:
    """Disorder without records too far in the future, which become dead letters."""
    newest: dict[int, int] = {}
    behind = []
    for one, time in timed:
        if 0 <= one.timestamp_ms < time - reach_ms:
            continue
        before = newest.get(one.partition, time)
        behind.append(max(0, before - time))
        newest[one.partition] = max(before, time)
    if not behind:
        return None
    behind.sort()
    return Disorder(len(behind), _quantile(behind), behind[-1])


def _quantile(ordered: Sequence[int]) -> int:
    """99.9 % quantile of ordered values."""
    return ordered[math.ceil(_NEARLY_ALL * len(ordered)) - 1]


def _longest_gap(seen: Sequence[SampledRecord]) -> int | None:
    timestamps: dict[int, list[int]] = {}
    for one in seen:
        if one.timestamp_ms >= 0:
            timestamps.setdefault(one.partition, []).append(one.timestamp_ms)
    gaps = [after - before for times in timestamps.values() for before, after in pairwise(times)]
    return max(0, *gaps) if gaps else None


def _key(columns: Columns, good: Sequence[SampledRecord]) -> str | None:
    """The first column that equals the key in all records with a key."""
    keyed = [(_text(one.key), one.values) for one in good if one.key is not None]
    simple = (c for c in columns if c.type in (Scalar.STRING, Scalar.INT, Scalar.LONG))
    for column in simple if keyed else ():
        if all(v is not None and str(v[column.name]) == text for text, v in keyed):
            return column.name
    return None


def _text(key: Json) -> str:
    """A key as text; of a record with one field, that field."""
    if isinstance(key, dict) and len(key) == 1:
        (key,) = key.values()
    return str(key)
