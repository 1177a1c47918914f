"""Checks of lanes' commit markers, boundaries and counts. Pure."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from brokers.records import KafkaRecord
from pipeline.lanes.marker_invariants import Breach, violations
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.signals import BoundaryRecord
from tests.faults.history import Finding, Kind, Place, place_of

Marker = tuple[Place, CommitMarker]
Boundary = tuple[Place, BoundaryRecord]
_KINDS: Mapping[Breach, Kind] = {
    Breach.EPOCH: Kind.ZOMBIE,
    Breach.GAP: Kind.GAP,
    Breach.OVERLAP: Kind.OVERLAP,
    Breach.ORDER: Kind.MARKER,
}


def check_markers(markers: Sequence[Marker]) -> tuple[Finding, ...]:
    """Each marker starts at the positions of the previous one, and no value in them decreases.

    Args:
        markers: all committed ones of a fragment, in the order of their offsets. None may have
            been compacted away, and no deploy may have changed what is read.
    """
    found: list[Finding] = []
    for violation in violations([marker for _, marker in markers]):
        place, _ = markers[violation.at]
        found.append(Finding(_KINDS[violation.breach], f"{place}: {violation.text}"))
    for (_, before), (place, after) in pairwise(markers):
        if after.epoch < before.epoch:
            continue
        of_another = (after.epoch, after.incarnation) != (before.epoch, before.incarnation)
        if of_another and not _continues(before, after):
            text = f"{place}: epoch {after.epoch} begins with another marker than a copy"
            found.append(Finding(Kind.MARKER, text))
        found += [
            Finding(Kind.MARKER, f"{place} has no position of {at}")
            for at in sorted(before.end.keys() - after.start.keys())
        ]
    return tuple(found)


def _continues(before: CommitMarker, after: CommitMarker) -> bool:
    """Whether the first marker of an owner is where the last one was.

    Of partitions that its inputs have got meanwhile it has read nothing.
    """
    new = after.end.keys() - before.end.keys()
    return all(after.end.get(at) == offset for at, offset in before.end.items()) and all(
        after.end[at] == after.start.get(at) for at in new
    )


def check_totals(
    markers: Sequence[Marker], output: Sequence[KafkaRecord], letters: Sequence[KafkaRecord]
) -> tuple[Finding, ...]:
    """The counts of the last marker equal the numbers of records in the topics."""
    if not markers:
        return ()
    place, last = markers[-1]
    found = []
    for what, count, there in (
        ("records", last.totals.records_out, output),
        ("dead letters", last.totals.dead_letters, letters),
    ):
        if count != len(there):
            where = f", the last at {place_of(there[-1])}" if there else ""
            text = f"{place} counts {count} {what}, readers find {len(there)}{where}"
            found.append(Finding(Kind.MARKER, text))
    return tuple(found)


def check_promises(
    records: Iterable[KafkaRecord], boundaries: Iterable[Boundary]
) -> tuple[Finding, ...]:
    """No record after a boundary's positions has an event time at or below it.

    Except one that is marked as late, whose event time is at or below that of its mark.

    Args:
        records: all committed records of the topic that the boundaries are about.
        boundaries: all that were ever published of it.
    """
    promised: dict[int, list[tuple[int, int, Place]]] = {}
    for place, boundary in boundaries:
        for partition, offset in boundary.positions.items():
            promised.setdefault(partition, []).append((int(offset), boundary.boundary_ms, place))
    tightest = {partition: list(_tightest(published)) for partition, published in promised.items()}
    found = []
    for record in records:
        late = dict(record.headers).get(LATE_RESULT)
        if late is not None:
            if record.timestamp_ms > int(late):
                text = f"{place_of(record)} is marked as late by a promise of {int(late)}"
                found.append(Finding(Kind.PROMISE, text))
            continue
        of_partition = tightest.get(record.partition, [])
        at = bisect_right(of_partition, int(record.offset), key=_offset)
        if at == 0:
            continue
        since, boundary_ms, place = of_partition[at - 1]
        if record.timestamp_ms <= boundary_ms:
            text = (
                f"{place_of(record)} has event time {record.timestamp_ms}, although {place} "
                f"promised that after offset {since} none at or below {boundary_ms} comes"
            )
            found.append(Finding(Kind.PROMISE, text))
    return tuple(found)


def check_epochs(boundaries: Sequence[Boundary]) -> tuple[Finding, ...]:
    """No boundary has an epoch below an earlier one's, and within an epoch none decreases."""
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


def _tightest(published: list[tuple[int, int, Place]]) -> Iterator[tuple[int, int, Place]]:
    """In order of offsets, each with the largest boundary of all at or before it."""
    largest: tuple[int, Place] | None = None
    for offset, boundary_ms, place in sorted(published):
        if largest is None or boundary_ms > largest[0]:
            largest = (boundary_ms, place)
        yield offset, *largest


def _offset(published: tuple[int, int, Place]) -> int:
    return published[0]
