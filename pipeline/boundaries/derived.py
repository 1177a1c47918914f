"""The boundary of a stream that a fragment writes, for one lane that reads it.

A boundary says: after these positions, no more records at or below t. It counts for a lane only
once the lane's finished batches cover the positions, so that no record which lies before them is
still to come. Until then it is kept, within a limit. A boundary that does not name every partition
that the lane reads never counts: it was published before the topic got more partitions, and says
nothing about the new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.ids import Epoch, Millis, Offset

PENDING_MAX = 64
"""Boundaries that are kept until they are covered. Any of them could be left out without harm: the
lane would only learn of its event time in larger steps. 64 keeps a lane that catches up moving."""


@dataclass(frozen=True, slots=True)
class PendingBoundary:
    """A boundary that the lane has not read far enough for."""

    boundary_ms: Millis
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class WriterSeen:
    """What a lane knows of the one writer of an input.

    `pending` is in the order of the writer's log, so boundaries and positions rise along it.
    """

    epoch: Epoch | None = None
    covered_ms: Millis | None = None
    pending: tuple[PendingBoundary, ...] = ()


def heard(seen: WriterSeen, epoch: Epoch, boundary: PendingBoundary) -> WriterSeen:
    """Take in a boundary that was read from the writer's log.

    One from an older epoch than the newest seen is ignored, and so is one that says nothing new:
    the same t for fewer records is the stronger promise, unless it is about fewer partitions.
    """
    if seen.epoch is not None and epoch < seen.epoch:
        return seen
    if seen.pending:
        newest = seen.pending[-1]
        grown = not boundary.positions.keys() <= newest.positions.keys()
        news = grown or boundary.boundary_ms > newest.boundary_ms
    else:
        news = seen.covered_ms is None or boundary.boundary_ms > seen.covered_ms
    pending = _thinned((*seen.pending, boundary)) if news else seen.pending
    return WriterSeen(epoch, seen.covered_ms, pending)


def settled(seen: WriterSeen, finished: Mapping[int, Offset]) -> WriterSeen:
    """Let every pending boundary count whose positions the finished ones cover.

    `finished` maps every partition that the lane reads to its position there; a partition that it
    does not read yet counts as not read at all. A boundary that leaves out one of them is dropped:
    what a lane reads does not change while it runs.
    """
    covered = seen.covered_ms
    waiting: list[PendingBoundary] = []
    for boundary in seen.pending:
        if not finished.keys() <= boundary.positions.keys():
            continue
        if not covers(finished, boundary.positions):
            waiting.append(boundary)
        elif covered is None or boundary.boundary_ms > covered:
            covered = boundary.boundary_ms
    if len(waiting) == len(seen.pending):
        return seen
    return WriterSeen(seen.epoch, covered, tuple(waiting))


def covers(finished: Mapping[int, Offset], positions: Mapping[int, Offset]) -> bool:
    """Whether everything before `positions` is finished."""
    return all(finished.get(partition, 0) >= offset for partition, offset in positions.items())


def _thinned(pending: tuple[PendingBoundary, ...]) -> tuple[PendingBoundary, ...]:
    """Leave out every second of the inner ones when there are too many.

    The oldest stays, since the lane can use it first, and the newest, since nothing replaces it.
    """
    if len(pending) <= PENDING_MAX:
        return pending
    return (*pending[:-1:2], pending[-1])
