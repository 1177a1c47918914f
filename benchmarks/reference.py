"""Reference results of the jobs that are compared, computed from the readings. Pure.

A side's results are compared with these before its times count.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

WINDOW_MS = 1_000
TOLERANCE = 1e-9
"""Of averages: sides add up floating-point numbers in different orders."""
LOWEST_CELSIUS = -90.0

Decoded = Mapping[str, Any]
Converted = tuple[str, str, float, float, int]


@dataclass(frozen=True, slots=True)
class Group:
    """A window of a group, by its end in ms since 1970; None for a column that it does not have."""

    site: str | None
    sensor: str | None
    end_ms: int


@dataclass(frozen=True, slots=True)
class Total:
    """What a window's result contains: an average or a maximum, and the number of readings."""

    celsius: float
    readings: int

    def equals(self, other: "Total") -> bool:
        """Whether both are the same but for rounding."""
        near = math.isclose(self.celsius, other.celsius, rel_tol=0, abs_tol=TOLERANCE)
        return near and self.readings == other.readings


Windows = Mapping[Group, Total]


def instant_ms(at: datetime) -> int:
    """Milliseconds since 1970."""
    return round(at.timestamp() * 1_000)


def converted(row: Decoded) -> Converted:
    """A result of the stateless job as a value that can be compared."""
    at_ms = instant_ms(row["at"])
    return row["sensor"], row["site"], row["fahrenheit"], row["humidity"], at_ms


def conversion(reading: Decoded) -> Converted | None:
    """The stateless job on one reading; None if its filter drops it."""
    if reading["celsius"] <= LOWEST_CELSIUS:
        return None
    fahrenheit = reading["celsius"] * 1.8 + 32
    at_ms = instant_ms(reading["at"])
    return reading["sensor"], reading["site"], fahrenheit, reading["humidity"], at_ms


def conversions(readings: Mapping[bytes, int], decode: Any) -> Counter[Converted]:
    """The stateless job on encoded readings, each with its number."""
    found: Counter[Converted] = Counter()
    for value, number in readings.items():
        result = conversion(decode(value))
        if result is not None:
            found[result] += number
    return found


def averages(readings: Iterable[Decoded]) -> Windows:
    """The windowed job: averages of a second for each site."""
    groups: dict[Group, list[float]] = defaultdict(list)
    for reading in readings:
        end_ms = _end_ms(instant_ms(reading["at"]))
        groups[Group(reading["site"], None, end_ms)].append(reading["celsius"])
    return {
        group: Total(math.fsum(values) / len(values), len(values))
        for group, values in groups.items()
    }


def chain(readings: Iterable[Decoded], shift_ms: int) -> tuple[Windows, Windows, Windows]:
    """The chained job: maxima of a second for each sensor of a site, of these by site, of all.

    Args:
        readings: the decoded readings.
        shift_ms: event time of a window's result, after the window's end.
    """
    single = (
        (Group(r["site"], r["sensor"], _end_ms(instant_ms(r["at"]))), Total(r["celsius"], 1))
        for r in readings
    )
    first = _maxima(single)
    second = _maxima(
        (Group(g.site, None, _end_ms(g.end_ms + shift_ms)), t) for g, t in first.items()
    )
    third = _maxima((Group(None, None, _end_ms(g.end_ms + shift_ms)), t) for g, t in second.items())
    return first, second, third


def _maxima(rows: Iterable[tuple[Group, Total]]) -> Windows:
    found: dict[Group, Total] = {}
    for group, total in rows:
        before = found.get(group)
        found[group] = (
            total
            if before is None
            else Total(max(before.celsius, total.celsius), before.readings + total.readings)
        )
    return found


def _end_ms(at_ms: int) -> int:
    """The end of the window that contains a time."""
    return at_ms - at_ms % WINDOW_MS + WINDOW_MS


def window_of(row: Decoded) -> tuple[Group, Total]:
    """A result of a window as values that can be compared."""
    group = Group(row.get("site"), row.get("sensor"), instant_ms(row["window_end"]))
    return group, Total(row["celsius"], row["readings"])


@dataclass(frozen=True, slots=True)
class Comparison:
    """Windows compared with the reference.

    Args:
        equal: results that are right, by their index.
        lost: windows without a result.
        wrong: results that differ, are not in the reference, or came twice.
    """

    equal: tuple[int, ...]
    lost: int
    wrong: int

    @property
    def exact(self) -> bool:
        """Whether there is nothing but what should be."""
        return not self.lost and not self.wrong


def compare(
    expected: Windows, found: Sequence[tuple[Group, Total]], from_ms: int, until_ms: int
) -> Comparison:
    """Compare the results of windows that end between two times, both included."""
    left = {
        group: total for group, total in expected.items() if from_ms <= group.end_ms <= until_ms
    }
    equal, wrong = [], 0
    answered = set()
    for index, (group, total) in enumerate(found):
        if not from_ms <= group.end_ms <= until_ms:
            continue
        due = left.get(group)
        if due is not None and group not in answered and due.equals(total):
            equal.append(index)
        else:
            wrong += 1
        answered.add(group)
    lost = sum(group not in answered for group in left)
    return Comparison(tuple(equal), lost, wrong)
