"""Checks of results against the expected ones: values, multiplicity and order. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.faults.history import Expected, Finding, Kind, Place, Row, Seen, words

Result = tuple[Row, int]
"""A record's values and event time."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Column names of an output; `identity` are the columns that identify a record."""

    names: tuple[str, ...]
    identity: tuple[str, ...]

    def identify(self, row: Row) -> Row:
        """The identity of a row."""
        return tuple(row[self.names.index(name)] for name in self.identity)

    def words(self, result: Result) -> str:
        """A record as text."""
        row, event_ms = result
        values = ", ".join(f"{n}={v!r}" for n, v in zip(self.names, row, strict=True))
        return f"({values}) at {event_ms}"


def check_values(
    topic: str, columns: Columns, expected: Iterable[Expected], seen: Iterable[Seen]
) -> tuple[Finding, ...]:
    """Findings of lost, duplicated, different and unexpected results."""
    expected_of: dict[Result, list[Expected]] = defaultdict(list)
    for one in expected:
        expected_of[one.row, one.event_ms].append(one)
    seen_places: dict[Result, list[Place]] = defaultdict(list)
    for record in seen:
        seen_places[record.row, record.event_ms].append(record.place)
    surplus = {
        result: places[len(expected_of.get(result, ())) :] for result, places in seen_places.items()
    }
    missing = {
        result: ones[len(seen_places.get(result, ())) :] for result, ones in expected_of.items()
    }
    others = {
        result: list(places) for result, places in surplus.items() if result not in expected_of
    }
    found = list(_different(columns, missing, others))
    for result, ones in missing.items():
        for one in ones:
            follows = f"; it follows from {words(one.sources)}" if one.sources else ""
            text = f"{columns.words(result)} never came to topic {topic}{follows}"
            found.append(Finding(Kind.LOST, text))
    for result, places in surplus.items():
        if result not in expected_of:
            continue
        for place in places:
            text = (
                f"{columns.words(result)} at {place} came before: {words(seen_places[result][:1])}"
            )
            found.append(Finding(Kind.DUPLICATED, text))
    for result, places in others.items():
        for place in places:
            text = f"{columns.words(result)} at {place} follows from nothing"
            found.append(Finding(Kind.UNEXPECTED, text))
    return tuple(found)


def check_order(
    columns: Columns, expected: Iterable[Expected], seen: Sequence[Seen], *, grown: int = 0
) -> tuple[Finding, ...]:
    """Records of one group are in one partition, in the order of their ranks.

    After each addition of partitions the later ones may be in another one.

    Args:
        columns: of the topic.
        expected: expected records, with ranks.
        seen: published records, in any order. Of equal records that of the lowest offset has the
            lowest rank.
        grown: how often partitions were added to the topic.
    """
    ranks: dict[Result, list[tuple[Row, int]]] = defaultdict(list)
    for one in expected:
        if one.order is not None:
            ranks[one.row, one.event_ms].append(one.order)
    for orders in ranks.values():
        orders.sort(key=lambda order: (order[1], repr(order[0])), reverse=True)
    groups: dict[Row, list[tuple[int, Seen]]] = defaultdict(list)
    for record in sorted(seen, key=lambda record: record.place):
        if orders := ranks.get((record.row, record.event_ms), []):
            group, rank = orders.pop()
            groups[group].append((rank, record))
    return tuple(
        finding
        for ranked in groups.values()
        for finding in (*_reordered(columns, ranked), *_scattered(columns, ranked, grown))
    )


def _reordered(columns: Columns, ranked: Sequence[tuple[int, Seen]]) -> Iterator[Finding]:
    """Records of a group after others of their partition with a higher rank."""
    last: dict[int, tuple[int, Seen]] = {}
    for rank, record in ranked:
        before_rank, before = last.get(record.place.partition, (rank, record))
        if rank < before_rank:
            what = columns.words((record.row, record.event_ms))
            earlier = columns.words((before.row, before.event_ms))
            text = f"{what} at {record.place} comes after {earlier} at {before.place}"
            yield Finding(Kind.REORDERED, text)
        last[record.place.partition] = (max(rank, before_rank), record)


def _scattered(
    columns: Columns, ranked: Sequence[tuple[int, Seen]], grown: int
) -> Iterator[Finding]:
    """Records of a group in another partition than that of the previous rank."""
    before: Seen | None = None
    for _, record in sorted(ranked, key=lambda one: (one[0], one[1].place)):
        if before is not None and before.place.partition != record.place.partition:
            grown -= 1
            if grown < 0:
                what = columns.words((record.row, record.event_ms))
                text = f"{what} at {record.place}, others of its group at {before.place}"
                yield Finding(Kind.SCATTERED, text)
        before = record


def _different(
    columns: Columns, missing: dict[Result, list[Expected]], others: dict[Result, list[Place]]
) -> Iterator[Finding]:
    """Findings of a missing record and an unexpected one of the same identity.

    Such pairs are removed from both arguments.
    """
    waiting: dict[Row, list[Result]] = defaultdict(list)
    for result, ones in missing.items():
        waiting[columns.identify(result[0])] += [result] * len(ones)
    for result, places in others.items():
        candidates = waiting.get(columns.identify(result[0]), [])
        while places and candidates:
            instead = candidates.pop(0)
            missing[instead].pop()
            text = f"{columns.words(result)} at {places.pop(0)} instead of {columns.words(instead)}"
            yield Finding(Kind.DIFFERENT, text)


def counts(findings: Iterable[Finding]) -> dict[Kind, int]:
    """Number of findings per kind."""
    return dict(Counter(finding.kind for finding in findings))
