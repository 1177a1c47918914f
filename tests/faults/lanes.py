"""Checks what lanes say of themselves: markers, boundaries, counts. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from brokers.records import KafkaRecord
from pipeline.lanes.markers import CommitMarker
from pipeline.lanes.positions import InputPartition, Positions
from pipeline.lanes.signals import BoundaryRecord
from tests.faults.history import Finding, Kind, Place, place_of

Marker = tuple[Place, CommitMarker]
Boundary = tuple[Place, BoundaryRecord]


def check_markers(markers: Sequence[Marker]) -> tuple[Finding, ...]:
    """Each marker begins where the one before ended, and nothing in them goes back.

    Args:
        markers: all committed ones of a fragment, in the order of their offsets.
    """
    found: list[Finding] = []
    for (_, before), (place, after) in pairwise(markers):
        if after.epoch < before.epoch:
            text = f"{place} is of epoch {after.epoch}, although epoch {before.epoch} had written"
            found.append(Finding(Kind.ZOMBIE, text))
            continue
        copied = dict(after.end) == dict(before.end)
        if after.epoch > before.epoch and not copied:
            text = f"{place}: epoch {after.epoch} begins with another marker than a copy"
            found.append(Finding(Kind.MARKER, text))
        if not copied:
            found += _joined(place, before, after)
        found += _monotone(place, before, after)
    return tuple(found)


def check_totals(
    markers: Sequence[Marker], output: Sequence[KafkaRecord], letters: Sequence[KafkaRecord]
) -> tuple[Finding, ...]:
    """The last marker counts exactly what readers find."""
    if not markers:
        return ()
    place, last = markers[-1]
    found = []
    for what, said, there in (
        ("records", last.totals.records_out, output),
        ("dead letters", last.totals.dead_letters, letters),
    ):
        if said != len(there):
            where = f", the last at {place_of(there[-1])}" if there else ""
            text = f"{place} counts {said} {what}, readers find {len(there)}{where}"
            found.append(Finding(Kind.MARKER, text))
    return tuple(found)


def check_promises(
    records: Iterable[KafkaRecord], boundaries: Iterable[Boundary]
) -> tuple[Finding, ...]:
    """After a boundary's positions no record follows with event time at or below it.

    Args:
        records: all committed records of the topic that the boundaries are about.
        boundaries: all that were ever published of it.
    """
    promised: dict[int, list[tuple[int, int, Place]]] = {}
    for place, boundary in boundaries:
        for partition, offset in boundary.positions.items():
            promised.setdefault(partition, []).append((int(offset), boundary.boundary_ms, place))
    tightest = {partition: list(_tightest(said)) for partition, said in promised.items()}
    found = []
    for record in records:
        said = tightest.get(record.partition, [])
        at = bisect_right(said, int(record.offset), key=_offset)
        if at == 0:
            continue
        since, boundary_ms, place = said[at - 1]
        if record.timestamp_ms <= boundary_ms:
            text = (
                f"{place_of(record)} has event time {record.timestamp_ms}, although {place} "
                f"promised that after offset {since} none at or below {boundary_ms} comes"
            )
            found.append(Finding(Kind.PROMISE, text))
    return tuple(found)


def check_epochs(boundaries: Sequence[Boundary]) -> tuple[Finding, ...]:
    """Nobody publishes under an epoch that was followed, and within one no boundary goes back."""
    found = []
    for (_, before), (place, after) in pairwise(boundaries):
        if after.writer != before.writer:
            continue
        if after.epoch < before.epoch:
            text = f"{place} is of epoch {after.epoch}, although epoch {before.epoch} had written"
            found.append(Finding(Kind.ZOMBIE, text))
        elif after.boundary_ms < before.boundary_ms:
            text = f"{place}: {after.boundary_ms} after {before.boundary_ms}"
            found.append(Finding(Kind.PROMISE, text))
    return tuple(found)


def _joined(place: Place, before: CommitMarker, after: CommitMarker) -> Iterator[Finding]:
    for at in sorted({*before.end, *after.start}):
        ended, begins = before.end.get(at), after.start.get(at)
        if ended == begins or begins is None:
            if begins is None:
                text = f"{place} has no position of {_where(at, ended)}"
                yield Finding(Kind.MARKER, text)
            continue
        # A partition that is new has no end before; it begins at its first record.
        if ended is None:
            continue
        kind = Kind.GAP if begins > ended else Kind.OVERLAP
        text = f"{place} begins at {_where(at, begins)}, the marker before ended at offset {ended}"
        yield Finding(kind, text)
    if after.incarnation == before.incarnation and after.batch != before.batch + 1:
        text = f"{place}: batch {after.batch} follows on batch {before.batch}"
        yield Finding(Kind.MARKER, text)


def _monotone(place: Place, before: CommitMarker, after: CommitMarker) -> Iterator[Finding]:
    pairs = (
        ("boundary", before.boundary_ms, after.boundary_ms),
        ("records out", before.totals.records_out, after.totals.records_out),
        ("records in", before.totals.records_in, after.totals.records_in),
        ("dead letters", before.totals.dead_letters, after.totals.dead_letters),
    )
    for what, was, now in pairs:
        if was is not None and (now is None or now < was):
            yield Finding(Kind.MARKER, f"{place}: {what} {now} after {was}")
    for what, was_at, now_at in (
        ("end", before.end, after.end),
        ("needed position", before.needed, after.needed),
    ):
        yield from _back(place, what, was_at, now_at)
    yield from _beyond(place, after.needed, after.end)


def _back(place: Place, what: str, before: Positions, after: Positions) -> Iterator[Finding]:
    for at, was in sorted(before.items()):
        now = after.get(at)
        if now is not None and now < was:
            text = f"{place}: the {what} went back to {_where(at, now)} from {was}"
            yield Finding(Kind.MARKER, text)


def _beyond(
    place: Place, needed: Positions, end: Mapping[InputPartition, int]
) -> Iterator[Finding]:
    for at, offset in sorted(needed.items()):
        if offset > end.get(at, offset):
            text = f"{place}: {_where(at, offset)} is needed, beyond the end {end[at]}"
            yield Finding(Kind.MARKER, text)


def _tightest(said: list[tuple[int, int, Place]]) -> Iterator[tuple[int, int, Place]]:
    """By offset, with the largest boundary of all that begin there or before."""
    largest: tuple[int, Place] | None = None
    for offset, boundary_ms, place in sorted(said):
        if largest is None or boundary_ms > largest[0]:
            largest = (boundary_ms, place)
        yield offset, *largest


def _offset(said: tuple[int, int, Place]) -> int:
    return said[0]


def _where(at: InputPartition, offset: int | None) -> str:
    return f"topic {at.topic}, partition {at.partition}, offset {offset} (input {at.input})"
