"""The boundary of a stream that a fragment writes, for one lane that reads it.

A boundary says: after these positions, no more records at or below t. It counts for a lane only
once the lane's finished batches cover the positions, so that no record which lies before them is
still to come. Until then it is kept, within a limit. A boundary that does not name every partition
that the lane reads never counts: it was published before the topic got more partitions, and says
nothing about the new ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.ids import Epoch, Millis, Offset, SteadyMillis

PENDING_MAX = 64
"""Boundaries that are kept until they are covered. Any of them could be left out without harm: the
lane would only learn of its event time in larger steps. 64 keeps a lane that catches up moving."""

IDLE_FRESH_MS = 5_000
"""For how long it counts that a writer has said that it is idle: five of its usual pauses. A writer
that has died says nothing any more, and what its inputs hold is still to come."""
IDLE_OBSERVED_MS = 3_000
"""For how long a writer has to say that it is idle before it counts. What is read of the past, when
a reader begins, is read in less."""


@dataclass(frozen=True, slots=True)
class PendingBoundary:
    """A boundary that the lane has not read far enough for."""

    boundary_ms: Millis
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class WriterSeen:
    """What a lane knows of the one writer of an input.

    Args:
        epoch: the newest.
        covered_ms: the boundary that counts.
        pending: in the order of the writer's log, so boundaries and positions rise along it.
        idle_since_ms: since when it has said that it is idle, without a longer pause (steady time);
            None: it is active, or has not said anything.
        idle_at_ms: when it last said so.
    """

    epoch: Epoch | None = None
    covered_ms: Millis | None = None
    pending: tuple[PendingBoundary, ...] = ()
    idle_since_ms: SteadyMillis | None = None
    idle_at_ms: SteadyMillis | None = None

    def is_idle(self, now_ms: SteadyMillis) -> bool:
        """Whether it has been idle for a while, by what it says."""
        since_ms, at_ms = self.idle_since_ms, self.idle_at_ms
        if since_ms is None or at_ms is None:
            return False
        return now_ms - at_ms <= IDLE_FRESH_MS and at_ms - since_ms >= IDLE_OBSERVED_MS


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
    return replace(_of_epoch(seen, epoch), pending=pending)


def told_activity(seen: WriterSeen, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis) -> WriterSeen:
    """Take in what a writer says of itself; what an older epoch says is ignored.

    Args:
        seen: what is known of it.
        epoch: under which it says so.
        idle: whether all of its inputs are idle, and nothing that it keeps can still come out.
        at_ms: when that was read (steady time).
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
    """What another owner has said of itself says nothing of a new one."""
    if seen.epoch == epoch:
        return seen
    return replace(seen, epoch=epoch, idle_since_ms=None, idle_at_ms=None)


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
    return replace(seen, covered_ms=covered, pending=tuple(waiting))


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
