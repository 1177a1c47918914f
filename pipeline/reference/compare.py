"""Comparison of recorded output with the expected rows: none lost, duplicated or unexpected.

Both sides are multisets of rows. A row beyond the expected ones is *duplicated* if it was expected
fewer times; it is *different* if a missing row has the same identity (so its values are wrong);
otherwise it is *unexpected*.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Value = str | int | float | bool | None
Row = tuple[Value, ...]
"""The values of one record in a fixed order of columns; instants are ms since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Different:
    """One record with other values than expected."""

    expected: Row
    seen: Row


@dataclass(frozen=True, slots=True)
class Comparison:
    """Differences between recorded output and expectation.

    Args:
        name: of the stream.
        columns: names of the values of a row.
        expected: number of expected rows.
        seen: number of recorded rows.
        right: number of expected rows that were recorded, each counted once.
    """

    name: str
    columns: tuple[str, ...]
    expected: int
    seen: int
    right: int
    missing: tuple[Row, ...]
    unexpected: tuple[Row, ...]
    duplicated: tuple[Row, ...]
    different: tuple[Different, ...]

    @property
    def exact(self) -> bool:
        """Whether every expected row was recorded exactly once, and no other."""
        return self.right == self.expected == self.seen


def compare(
    name: str,
    columns: tuple[str, ...],
    identity: tuple[str, ...],
    expected: Iterable[Row],
    seen: Iterable[Row],
) -> Comparison:
    """Compare two multisets of rows.

    Args:
        name: of the stream, for the report.
        columns: names of the values of a row.
        identity: the columns that identify a record.
        expected: the expected rows, in any order.
        seen: the recorded rows, in any order.
    """
    wanted, came = Counter(expected), Counter(seen)
    missing = wanted - came
    surplus = came - wanted
    duplicated = [row for row, n in surplus.items() if row in wanted for _ in range(n)]
    others = Counter({row: n for row, n in surplus.items() if row not in wanted})
    different = _pair(missing, others, _picker(columns, identity))
    paired_missing = Counter(pair.expected for pair in different)
    paired_others = Counter(pair.seen for pair in different)
    return Comparison(
        name=name,
        columns=columns,
        expected=wanted.total(),
        seen=came.total(),
        right=(wanted & came).total(),
        missing=_ordered(missing - paired_missing),
        unexpected=_ordered(others - paired_others),
        duplicated=tuple(sorted(duplicated, key=repr)),
        different=different,
    )


def describe(comparison: Comparison, limit: int = 5) -> tuple[str, ...]:
    """Lines of a report: a summary, then up to `limit` examples of each kind of difference."""
    name, columns = comparison.name, comparison.columns
    if comparison.exact:
        return (f"{name}: {comparison.right} compared, all right",)
    counts = f"{comparison.expected} expected, {comparison.seen} came, {comparison.right} right"
    lines = [f"{name}: {counts}"]
    kinds = (
        ("missing", comparison.missing),
        ("unexpected", comparison.unexpected),
        ("duplicated", comparison.duplicated),
    )
    for kind, rows in kinds:
        examples = [f"    {_text(columns, row)}" for row in rows[:limit]]
        lines += _section(kind, len(rows), examples, limit)
    examples = [
        f"    {_text(columns, pair.expected)} came as {_text(columns, pair.seen)}"
        for pair in comparison.different[:limit]
    ]
    lines += _section("different", len(comparison.different), examples, limit)
    return tuple(lines)


def _picker(columns: tuple[str, ...], identity: tuple[str, ...]) -> Callable[[Row], Row]:
    """A function that returns the identity of a row."""
    places = tuple(columns.index(column) for column in identity)
    return lambda row: tuple(row[place] for place in places)


def _pair(
    missing: Counter[Row], others: Counter[Row], identify: Callable[[Row], Row]
) -> tuple[Different, ...]:
    """Pairs of a missing row and a recorded row of the same identity."""
    waiting: defaultdict[Row, list[Row]] = defaultdict(list)
    for row in _ordered(others):
        waiting[identify(row)].append(row)
    pairs = []
    for row in _ordered(missing):
        candidates = waiting.get(identify(row))
        if candidates:
            pairs.append(Different(row, candidates.pop(0)))
    return tuple(pairs)


def _ordered(rows: Counter[Row]) -> tuple[Row, ...]:
    """All rows in an order that depends only on the rows; values may be of mixed types."""
    return tuple(sorted(rows.elements(), key=repr))


def _text(columns: tuple[str, ...], row: Row) -> str:
    """A row in a report."""
    return ", ".join(f"{name}={value!r}" for name, value in zip(columns, row, strict=True))


def _section(kind: str, count: int, examples: list[str], limit: int) -> list[str]:
    """The lines about one kind of difference; empty if there is none."""
    if not count:
        return []
    more = [f"    … and {count - limit} more"] if count > limit else []
    return [f"  {kind}: {count}", *examples, *more]
