"""Comparison of expected and actual records; differences in words. Pure.

An expected record names the fields that matter; other fields of an actual record are ignored.
Records are matched one to one: a record expected twice must occur twice.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from schemas.json_value import Encodable, Json, JsonObject
from schemas.logical import Native

_RELATIVE: Final = 1e-9
_ABSOLUTE: Final = 1e-12
"""Fractions that differ by less are equal: the order of additions changes them."""
_SHOWN_MAX: Final = 20
"""Number of differences shown in full; of the others only the count is."""


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected record.

    Args:
        fields: the compared values, as decoded.
        shown: the same as JSON.
        place: its place in the test.
    """

    fields: Mapping[str, Native]
    shown: JsonObject
    place: str


@dataclass(frozen=True, slots=True)
class Actual:
    """An actual record: decoded, and as JSON."""

    value: Mapping[str, Native | Json]
    shown: JsonObject


@dataclass(frozen=True, slots=True)
class Different:
    """A record that is similar to an expected one; `fields` are the names of differing fields."""

    expected: Expected
    came: Actual
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences from the expected records; empty: none.

    Args:
        different: pairs of mostly equal records.
        missing: expected records without a similar one.
        unexpected: further actual records.
        early: if only the order is wrong: the first record that precedes one expected
            before it.
    """

    different: tuple[Different, ...] = ()
    missing: tuple[Expected, ...] = ()
    unexpected: tuple[Actual, ...] = ()
    early: Expected | None = None

    def __bool__(self) -> bool:
        return bool(self.different or self.missing or self.unexpected or self.early)


def compare(
    expected: Sequence[Expected], came: Sequence[Actual], *, in_order: bool = False
) -> Differences:
    """Match every expected record with an actual one, as far as possible.

    Args:
        expected: the expected records.
        came: the actual records.
        in_order: whether the order must be equal, too.
    """
    paired = _paired(expected, came)
    left = [e for i, e in enumerate(expected) if i not in paired]
    over = [c for j, c in enumerate(came) if j not in set(paired.values())]
    if not left and not over:
        places = [paired[i] for i in range(len(expected))]
        early = _first_early(places) if in_order else None
        return Differences(early=None if early is None else expected[early])
    different, missing = [], []
    for one in left:
        near = max(over, key=lambda c, e=one: _likeness(e, c), default=None)  # type: ignore[misc]
        if near is None or not _likeness(one, near):
            missing.append(one)
            continue
        over.remove(near)
        different.append(Different(one, near, tuple(_unequal(one, near))))
    return Differences(tuple(different), tuple(missing), tuple(over))


def in_words(differences: Differences) -> tuple[str, ...]:
    """Lines of a report; the number of differences is bounded."""
    lines: list[str] = []
    for pair in differences.different[:_SHOWN_MAX]:
        lines.append(f"{pair.expected.place}: different from {_text(pair.expected.shown)}")
        lines.extend(
            f"  {name}: expected {_text(pair.expected.shown[name])}, "
            f"came {_text(pair.came.shown[name]) if name in pair.came.shown else 'nothing'}"
            for name in pair.fields
        )
        lines.append(f"  in {_text(pair.came.shown)}")
    lines += [f"{e.place}: missing {_text(e.shown)}" for e in differences.missing[:_SHOWN_MAX]]
    lines += [f"unexpected {_text(c.shown)}" for c in differences.unexpected[:_SHOWN_MAX]]
    if differences.early is not None:
        early = differences.early
        lines.append(f"{early.place}: came too early, all else is right: {_text(early.shown)}")
    for what in (differences.different, differences.missing, differences.unexpected):
        if len(what) > _SHOWN_MAX:
            lines.append(f"and {len(what) - _SHOWN_MAX:,} more like the last one")
    return tuple(lines)


def equal(expected: Native, came: Native | Json) -> bool:
    """Whether two values are equal; fractions approximately."""
    if isinstance(expected, tuple):  # a branch of a union, identified by its name
        expected = expected[1]
    if isinstance(expected, Mapping):
        return (
            isinstance(came, Mapping)
            and expected.keys() == came.keys()
            and all(equal(part, came[name]) for name, part in expected.items())
        )
    if isinstance(expected, list):
        return (
            isinstance(came, list)
            and len(expected) == len(came)
            and all(equal(*pair) for pair in zip(expected, came, strict=True))
        )
    if isinstance(expected, float) and isinstance(came, float):
        both_nan = math.isnan(expected) and math.isnan(came)
        return both_nan or math.isclose(expected, came, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return type(expected) is type(came) and bool(expected == came)


def _paired(expected: Sequence[Expected], came: Sequence[Actual]) -> dict[int, int]:
    """The matching of expected and actual records: as many pairs as possible.

    A record that names few fields may match several, so pairs are changed if that makes another
    one possible: augmenting paths in the bipartite graph of matches.
    """
    names = _telling(expected)
    places: dict[tuple[tuple[type, Native | Json], ...], list[int]] = {}
    for j, one in enumerate(came):
        places.setdefault(_tuple(one.value, names), []).append(j)
    fitting = {
        i: [j for j in places.get(_tuple(e.fields, names), ()) if not any(_unequal(e, came[j]))]
        for i, e in enumerate(expected)
    }
    taken: dict[int, int] = {}
    for i in fitting:
        _augment(i, fitting, taken)
    return {i: j for j, i in taken.items()}


def _augment(start: int, fitting: Mapping[int, Sequence[int]], taken: dict[int, int]) -> None:
    """Match `start`, if necessary by matching others differently."""
    came_from: dict[int, int] = {}
    todo = [start]
    while todo:
        i = todo.pop(0)
        for j in fitting[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if j in taken:
                todo.append(taken[j])
                continue
            free: int | None = j
            while free is not None:
                owner = came_from[free]
                before = next((k for k, o in taken.items() if o == owner), None)
                taken[free] = owner
                free = before if owner != start else None
            return


def _telling(expected: Sequence[Expected]) -> tuple[str, ...]:
    """The fields usable as an index of all expected records: plain values that all name."""
    if not expected:
        return ()
    return tuple(
        name
        for name in expected[0].fields
        if all(isinstance(e.fields.get(name), str | int) for e in expected)
    )


def _tuple(
    value: Mapping[str, Native | Json], names: tuple[str, ...]
) -> tuple[tuple[type, Native | Json], ...]:
    return tuple((type(part), part) for part in (value.get(name) for name in names))


def _unequal(expected: Expected, came: Actual) -> Iterator[str]:
    """The differing fields of an expected record."""
    for name, part in expected.fields.items():
        if name not in came.value or not equal(part, came.value[name]):
            yield name


def _likeness(expected: Expected, came: Actual) -> int:
    """How many fields are equal."""
    return len(expected.fields) - sum(1 for _ in _unequal(expected, came))


def _first_early(places: Sequence[int]) -> int | None:
    """The first expected record that precedes the one expected before it."""
    return next((i for i in range(1, len(places)) if places[i] < places[i - 1]), None)


def as_json(fields: Mapping[str, Native]) -> JsonObject:
    """Fields as JSON: a decimal is a number, any other value that JSON lacks a text."""
    found: JsonObject = json.loads(json.dumps(fields, default=_plain))
    return found


def _text(value: Encodable) -> str:
    return json.dumps(value, ensure_ascii=False)


def _plain(value: Native) -> float | str:
    return float(value) if isinstance(value, Decimal) else str(value)
