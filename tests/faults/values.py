"""Checks what came against what had to come: values, multiplicity and order. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tests.faults.history import Expected, Finding, Kind, Place, Row, Seen, words

Told = tuple[Row, int]
"""What a record says: its values and its event time."""


@dataclass(frozen=True, slots=True)
class Columns:
    """What the values of an output's rows are; `identity` says which record it is."""

    names: tuple[str, ...]
    identity: tuple[str, ...]

    def identify(self, row: Row) -> Row:
        """The part of a row that says which record it is."""
        return tuple(row[self.names.index(name)] for name in self.identity)

    def words(self, told: Told) -> str:
        """A record for people."""
        row, event_ms = told
        values = ", ".join(f"{n}={v!r}" for n, v in zip(self.names, row, strict=True))
        return f"({values}) at {event_ms}"


def check_values(
    topic: str, columns: Columns, expected: Iterable[Expected], seen: Iterable[Seen]
) -> tuple[Finding, ...]:
    """Nothing lost, nothing twice, nothing different, nothing else."""
    wanted: dict[Told, list[Expected]] = defaultdict(list)
    for one in expected:
        wanted[one.row, one.event_ms].append(one)
    came: dict[Told, list[Place]] = defaultdict(list)
    for record in seen:
        came[record.row, record.event_ms].append(record.place)
    surplus = {told: places[len(wanted.get(told, ())) :] for told, places in came.items()}
    missing = {told: ones[len(came.get(told, ())) :] for told, ones in wanted.items()}
    others = {told: list(places) for told, places in surplus.items() if told not in wanted}
    found = list(_different(columns, missing, others))
    for told, ones in missing.items():
        for one in ones:
            follows = f"; it follows from {words(one.sources)}" if one.sources else ""
            text = f"{columns.words(told)} never came to topic {topic}{follows}"
            found.append(Finding(Kind.LOST, text))
    for told, places in surplus.items():
        if told not in wanted:
            continue
        for place in places:
            text = f"{columns.words(told)} at {place} came before: {words(came[told][:1])}"
            found.append(Finding(Kind.DUPLICATED, text))
    for told, places in others.items():
        for place in places:
            text = f"{columns.words(told)} at {place} follows from nothing"
            found.append(Finding(Kind.UNEXPECTED, text))
    return tuple(found)


def check_order(
    columns: Columns, expected: Iterable[Expected], seen: Sequence[Seen], *, grown: int = 0
) -> tuple[Finding, ...]:
    """Records of one group lie in one partition, and in it in the order of their ranks.

    Each time that the topic grows, those that come later may lie in another one.

    Args:
        columns: of the topic.
        expected: what had to come, with ranks.
        seen: what came, in any order; offsets tell. Of equal records the first has the lowest rank.
        grown: how often the topic has got partitions meanwhile.
    """
    ranks: dict[Told, list[tuple[Row, int]]] = defaultdict(list)
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
    """Records of a group that come after others of their partition which rank higher."""
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
    """Records of a group that lie in another partition than the one before them by rank."""
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
    columns: Columns, missing: dict[Told, list[Expected]], others: dict[Told, list[Place]]
) -> Iterator[Finding]:
    """Pairs of one that is missing and one of the same identity that came instead.

    What is paired is taken out of both.
    """
    waiting: dict[Row, list[Told]] = defaultdict(list)
    for told, ones in missing.items():
        waiting[columns.identify(told[0])] += [told] * len(ones)
    for told, places in others.items():
        candidates = waiting.get(columns.identify(told[0]), [])
        while places and candidates:
            instead = candidates.pop(0)
            missing[instead].pop()
            text = f"{columns.words(told)} at {places.pop(0)} instead of {columns.words(instead)}"
            yield Finding(Kind.DIFFERENT, text)


def counts(findings: Iterable[Finding]) -> dict[Kind, int]:
    """How many findings there are of each kind."""
    return dict(Counter(finding.kind for finding in findings))
