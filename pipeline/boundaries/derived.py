"""Boundary of a derived stream, for one lane that reads it.

A boundary promises: after these positions, no more records at or below t. It is in effect for a
lane once the lane's finished batches cover the positions: no record before them is then still to
come. Until then it is pending, within a limit. A boundary without a position for every partition
that the lane reads is never in effect: it was published before the topic got more partitions, and
promises nothing for the new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.ids import Epoch, Millis, Offset, SteadyMillis

PENDING_MAX = 64
"""Maximum number of pending boundaries. Any of them could be dropped without harm: event time of
the lane would only move in larger steps. 64 keeps a lane that catches up moving."""

IDLE_FRESH_MS = 5_000
"""How long a writer's idle report is valid: five of its usual pauses. A writer that has died
reports nothing, and records of its inputs are still to come."""
IDLE_OBSERVED_MS = 3_000
"""How long a writer must report idle before it counts as idle. Older reports, which a new reader
reads first, are read in less time."""


@dataclass(frozen=True, slots=True)
class PendingBoundary:
    """A boundary whose positions the lane's finished batches do not cover yet."""

    boundary_ms: Millis
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class WriterSeen:
    """Boundaries and activity of the one writer of a derived input, as a lane has read them.

    Args:
        epoch: the newest epoch read.
        covered_ms: the boundary in effect.
        pending: in the order of the writer's log, so boundaries and positions rise along it.
        idle_since_ms: start of its idle reports without a longer pause (steady time); None: it is
            active, or has not reported.
        idle_at_ms: time of its latest idle report.
    """

    epoch: Epoch | None = None
    covered_ms: Millis | None = None
    pending: tuple[PendingBoundary, ...] = ()
    idle_since_ms: SteadyMillis | None = None
    idle_at_ms: SteadyMillis | None = None

    def is_idle(self, now_ms: SteadyMillis) -> bool:
        """Whether its idle reports are fresh, and have continued for IDLE_OBSERVED_MS."""
        since_ms, at_ms = self.idle_since_ms, self.idle_at_ms
        if since_ms is None or at_ms is None:
            return False
        return now_ms - at_ms <= IDLE_FRESH_MS and at_ms - since_ms >= IDLE_OBSERVED_MS


def with_boundary(seen: WriterSeen, epoch: Epoch, boundary: PendingBoundary) -> WriterSeen:
    """Add a boundary that was read from the writer's log.

    A boundary of an older epoch is ignored, and so is a redundant one: the same t for fewer records
    is the stronger promise, unless it covers fewer partitions.
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
    return replace(_of_epoch(seen, epoch), pending=pending)


def with_activity(seen: WriterSeen, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis) -> WriterSeen:
    """Add an activity report of the writer; reports of older epochs are ignored.

    Args:
        seen: the state before.
        epoch: of the report.
        idle: whether all of its inputs are idle, and its state can emit nothing more.
        at_ms: when the report was read (steady time).
    """
    if seen.epoch is not None and epoch < seen.epoch:
        return seen
    seen = _of_epoch(seen, epoch)
    if not idle:
        return replace(seen, idle_since_ms=None, idle_at_ms=None)
    since_ms, before_ms = seen.idle_since_ms, seen.idle_at_ms
    if since_ms is None or before_ms is None or at_ms - before_ms > IDLE_FRESH_MS:
        since_ms = at_ms
    return replace(seen, idle_since_ms=since_ms, idle_at_ms=at_ms)


def _of_epoch(seen: WriterSeen, epoch: Epoch) -> WriterSeen:
    """The state under a new epoch; idle reports of the previous owner are dropped."""
    if seen.epoch == epoch:
        return seen
    return replace(seen, epoch=epoch, idle_since_ms=None, idle_at_ms=None)


def settled(seen: WriterSeen, finished: Mapping[int, Offset]) -> WriterSeen:
    """Put pending boundaries into effect whose positions the finished ones cover.

    `finished` contains the position of every partition that the lane reads; a partition without any
    record read has position 0. A boundary that lacks one of them is dropped: the partitions that a
    lane reads do not change while it runs.
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
    return replace(seen, covered_ms=covered, pending=tuple(waiting))


def covers(finished: Mapping[int, Offset], positions: Mapping[int, Offset]) -> bool:
    """Whether all records before `positions` are finished."""
    return all(finished.get(partition, 0) >= offset for partition, offset in positions.items())


def _thinned(pending: tuple[PendingBoundary, ...]) -> tuple[PendingBoundary, ...]:
    """Drop every second inner boundary when there are too many.

    The oldest stays, since it takes effect first, and the newest, since nothing replaces it.
    """
    if len(pending) <= PENDING_MAX:
        return pending
    return (*pending[:-1:2], pending[-1])
