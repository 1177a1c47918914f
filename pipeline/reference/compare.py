"""Compares recorded output with what was expected: nothing lost, nothing twice, nothing else.

Both sides are multisets of rows. A row beyond the expected ones is *duplicated* when it was
expected and came more often; it is *different* when a missing row has the same identity (so it came
with wrong values); otherwise it is *unexpected*.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

Value = str | int | float | bool | None
Row = tuple[Value, ...]
"""The values of one record in a fixed order of columns; instants are ms since 1970 UTC."""


@dataclass(frozen=True, slots=True)
class Different:
    """One record that came with other values than it should have."""

    expected: Row
    seen: Row


@dataclass(frozen=True, slots=True)
class Comparison:
    """How recorded output and expectation differ.

    Args:
        name: of the stream.
        columns: what the values of a row are.
        expected: how many rows should have come.
        seen: how many came.
        right: how many came that should have, each counted once.
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
        """Whether every expected row came exactly once and nothing else did."""
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
        identity: the columns that say which record it is; the others say what it says.
        expected: the rows that should have come, in any order.
        seen: the rows that came, in any order.
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
    """Lines for people: a summary, then up to `limit` examples of each kind of difference."""
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
    """A function that takes the identity out of a row."""
    places = tuple(columns.index(column) for column in identity)
    return lambda row: tuple(row[place] for place in places)


def _pair(
    missing: Counter[Row], others: Counter[Row], identify: Callable[[Row], Row]
) -> tuple[Different, ...]:
    """Rows that should have come with rows of the same identity that came instead."""
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
    """All rows in an order that depends on nothing but the rows; values may be of mixed types."""
    return tuple(sorted(rows.elements(), key=repr))


def _text(columns: tuple[str, ...], row: Row) -> str:
    """A row for people."""
    return ", ".join(f"{name}={value!r}" for name, value in zip(columns, row, strict=True))


def _section(kind: str, count: int, examples: list[str], limit: int) -> list[str]:
    """The lines about one kind of difference; none when there is none."""
    if not count:
        return []
    more = [f"    … and {count - limit} more"] if count > limit else []
    return [f"  {kind}: {count}", *examples, *more]
