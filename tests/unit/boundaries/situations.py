"""A lane between two batches, for tests of what it does next."""

from dataclasses import dataclass, replace

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import (
    LaneTime,
    batch_finished,
    begin,
    boundary_read,
    ends_read,
    writer_of,
)
from pipeline.boundaries.next_batch import Decision, LastBatch, Limits, next_batch
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.boundaries.promise import watermark_for
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.unit.boundaries.support import SPEED, START_MS, lane, marker

MANY = Limits(1_000_000)
JOIN = Joined(60_000)
TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=0))
VISITS = Sessions(SessionWindow(gap_ms=5, longest_ms=100))
SLIDING = Windowed(SlidingWindow(size_ms=10, offset_ms=1, slide_ms=4))
WAITING = Joined(20, 20, waits=True)
STATEFUL: tuple[Shape, ...] = (JOIN, WAITING, TEN, SLIDING, VISITS)
SHAPES: tuple[Shape, ...] = (*STATEFUL, Stateless())


@dataclass(frozen=True)
class Situation:
    """A lane between two batches, and what it knows."""

    time: LaneTime
    last: LastBatch
    ends: Ends | None
    limits: Limits = MANY
    now: SteadyMillis = START_MS

    @property
    def shape(self) -> Shape:
        """What the lane computes."""
        return self.time.profile.shape

    @property
    def decision(self) -> Decision:
        """What it does next."""
        return self.decided[1]

    @property
    def decided(self) -> tuple[LaneTime, Decision]:
        """The same, with its event time."""
        return next_batch(self.time, self.last, self.ends, self.limits, self.now)

    def later(self, now: SteadyMillis) -> "Situation":
        """The same at a later time; the brokers have given the same answer once more."""
        ends = None if self.ends is None else replace(self.ends, read_at_ms=now)
        return replace(self, time=self.decided[0], ends=ends, now=now)

    def finished(self, found: CommitMarker) -> "Situation":
        """The same after a batch."""
        return replace(self, time=batch_finished(self.time, found, 0, self.now))


def ends_of(*ends: tuple[ExternalInput | DerivedInput, tuple[int, ...]]) -> Ends:
    """An answer of the brokers about partitions 0, 1 and so on."""
    return Ends(
        START_MS,
        {i.topic: {p: Offset(end) for p, end in enumerate(found)} for i, found in ends},
    )


def situation(
    start: CommitMarker,
    *inputs: ExternalInput | DerivedInput,
    shape: Shape | None = None,
    ends: Ends | None = None,
) -> Situation:
    """A lane at a marker."""
    time = begin(lane(*inputs, shape=shape), start, {}, START_MS)
    if ends is not None:
        time = ends_read(time, None, ends)
    return Situation(time, LastBatch(start.end), ends)


def promising(found: Situation, at_ms: int, *offsets: int) -> Situation:
    """The same after a boundary of `SPEED` was read."""
    boundary = PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})
    return replace(found, time=boundary_read(found.time, writer_of(SPEED), Epoch(1), boundary))


def in_force(shape: Shape, end: Positions, event_ms: int) -> CommitMarker:
    """A marker with an event time in force."""
    if isinstance(shape, Stateless):
        return marker(end, batch=1, boundary_ms=event_ms)
    return marker(end, batch=1, eviction_ms=watermark_for(shape, Millis(event_ms)))
