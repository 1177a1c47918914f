"""Simulation of event time end to end, compared with a model that has every record.

Two writers append records to the partitions of their topics and promise boundaries; a lane reads
both in batches that it plans by what it knows: boundaries and ends that are read late and in parts,
and again after restarts. It judges lateness as Spark does: by the watermark of the previous batch.
A lane without state plans while its last batch is still being written. Topics get more partitions,
which writer and lane read at different times. No record may ever be late, in any order of events,
and once everything is read the lane must have reached the event time that the promises allow.
"""

from dataclasses import dataclass, field, replace

from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Answer, Ends, ends_of
from pipeline.boundaries.lane_time import (
    LaneTime,
    batch_finished,
    begin,
    boundary_read,
    ends_read,
    writer_of,
)
from pipeline.boundaries.next_batch import (
    Batch,
    LastBatch,
    Limits,
    PassOn,
    Sample,
    Wait,
    next_batch,
)
from pipeline.boundaries.profile import DerivedInput
from pipeline.boundaries.promise import promise, watermark_for
from pipeline.ids import BatchId, Epoch, Millis, Offset, SteadyMillis
from pipeline.lanes.batch import passed_on
from pipeline.lanes.marker_invariants import check_follows
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import Positions
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.profiles import examples
from tests.unit.boundaries.made_windows import ends_over
from tests.unit.boundaries.support import (
    SPEED,
    START_MS,
    VOLUME,
    WRITTEN_MS,
    at,
    lane,
    marker,
    positions,
)

INPUTS = (SPEED, VOLUME)
BASE_MS = 1_000_000
PARTITIONS_MAX = 4
SHAPES: tuple[Shape, ...] = (
    Joined(span_ms=20),
    Joined(span_ms=20, behind_ms=20, waits=True),
    Sessions(SessionWindow(gap_ms=7, longest_ms=100)),
    Windowed(TumblingWindow(size_ms=10, offset_ms=3)),
    Windowed(SlidingWindow(size_ms=10, offset_ms=1, slide_ms=4)),
    Stateless(),
)


@dataclass
class Writer:
    """An upstream fragment: the records of its topic, and the boundaries that it published.

    `seen`: of how many of the topic's partitions it knows.
    """

    stream: DerivedInput
    times: list[list[int]] = field(default_factory=lambda: [[], []])
    seen: int = 2
    promised: int = BASE_MS
    epoch: int = 1
    published: list[tuple[Epoch, PendingBoundary]] = field(default_factory=list)

    def transaction(self, records: list[tuple[int, int]], rise: int) -> None:
        """Append (partition, how far above the promise) and promise more."""
        for partition, above in records:
            self.times[partition % self.seen].append(self.promised + 1 + above)
        self.promised += rise
        self.publish()

    def notice(self) -> None:
        """Read the number of partitions, and publish a boundary that names them."""
        self.seen = len(self.times)
        self.publish()

    def publish(self) -> None:
        """Publish the promised boundary."""
        ends = {p: Offset(len(self.times[p])) for p in range(self.seen)}
        self.published.append((Epoch(self.epoch), PendingBoundary(Millis(self.promised), ends)))

    def from_offsets(self, read_to: Positions) -> list[int]:
        """The event times of all records that are not read."""
        return [
            time
            for partition, times in enumerate(self.times)
            for time in times[read_to.get(at(self.stream, partition), 0) :]
        ]

    def between(self, start: Positions, end: Positions) -> list[int]:
        """The event times of the records of a batch."""
        return [
            time
            for partition, times in enumerate(self.times)
            if (place := at(self.stream, partition)) in end
            for time in times[start[place] : end[place]]
        ]


@dataclass
class Query:
    """The query of the lane: executes what is planned, judges lateness as Spark does.

    `writing`: the marker of a batch that is computed and still being written.
    """

    shape: Shape
    marker: CommitMarker
    writing: CommitMarker | None = None

    @property
    def end(self) -> Positions:
        """Where the last batch ends."""
        return (self.writing or self.marker).end

    def execute(self, batch: Batch, writers: tuple[Writer, ...]) -> None:
        """Compute a batch, whose marker is then being written; the one before is by then."""
        assert self.writing is None
        last = self.marker
        late_ms, eviction_ms = last.eviction_ms, last.eviction_ms
        for writer in writers:
            for time in writer.between(last.end, batch.end):
                assert not self.late(time, late_ms), "a record of a derived stream is late"
        if batch.event_ms is not None and not isinstance(self.shape, Stateless):
            eviction_ms = watermark_for(self.shape, batch.event_ms)
        assert batch.end != last.end or eviction_ms != late_ms, "Spark would not begin this batch"
        boundary_ms = promise(
            self.shape,
            eviction_ms=eviction_ms,
            passed_ms=batch.event_ms,
            previous_ms=last.boundary_ms,
        )
        self.writing = replace(
            last,
            batch=BatchId(last.batch + 1),
            start=last.end,
            end=batch.end,
            late_ms=late_ms,
            eviction_ms=eviction_ms,
            boundary_ms=boundary_ms,
        )
        check_follows(last, self.writing)

    def late(self, time: int, late_ms: int | None) -> bool:
        """Whether a row of the next batch is late."""
        if isinstance(self.shape, Stateless):
            return self.marker.boundary_ms is not None and time <= self.marker.boundary_ms
        if late_ms is None:
            return False
        if isinstance(self.shape, Windowed):
            return ends_over(self.shape.window, time)[0] <= late_ms
        return time <= late_ms


class EventTime(RuleBasedStateMachine):
    """The state machine of two writers and a lane."""

    time: LaneTime
    ends: Ends | None
    planned_at: SteadyMillis | None
    moved: Millis | None

    @initialize(shape=st.sampled_from(SHAPES))
    def begin(self, shape: Shape) -> None:
        """A lane without progress."""
        self.shape = shape
        self.writers = (Writer(SPEED), Writer(VOLUME))
        self.boundaries = {writer.stream.topic: 0 for writer in self.writers}
        start = marker({**positions(SPEED, 0, 0), **positions(VOLUME, 0, 0)})
        self.query = Query(shape, start)
        self.now = START_MS
        self.restart_lane(0)

    @rule(
        which=st.integers(0, 1),
        records=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 60)), max_size=4),
        rise=st.one_of(st.integers(0, 30), st.integers(0, 5_000)),
    )
    def write(self, which: int, records: list[tuple[int, int]], rise: int) -> None:
        """A writer commits a transaction."""
        self.writers[which].transaction(records, rise)

    @rule(which=st.integers(0, 1))
    def new_writer(self, which: int) -> None:
        """Another node takes the upstream fragment over and repeats the last promise."""
        writer = self.writers[which]
        writer.epoch += 1
        writer.transaction([], 0)

    @rule(which=st.integers(0, 1))
    def grow(self, which: int) -> None:
        """A topic gets another partition, which no writer has read yet."""
        if len(self.writers[which].times) < PARTITIONS_MAX:
            self.writers[which].times.append([])

    @rule(which=st.integers(0, 1))
    def notice(self, which: int) -> None:
        """A writer reads the number of partitions."""
        self.writers[which].notice()

    @rule(which=st.integers(0, 1), count=st.integers(1, 5))
    def read_boundaries(self, which: int, count: int) -> None:
        """The lane gets more of a writer's boundaries."""
        writer = self.writers[which]
        for _ in range(count):
            number = self.boundaries[writer.stream.topic]
            if number < len(writer.published):
                self.boundaries[writer.stream.topic] = number + 1
                epoch, boundary = writer.published[number]
                self.time = boundary_read(self.time, writer_of(writer.stream), epoch, boundary)

    @rule(answered=st.sampled_from(((0, 1), (0, 1), (0,), (1,), ())))
    def read_ends(self, answered: tuple[int, ...]) -> None:
        """The lane gets the ends of some topics; the others are not answered."""
        found = {
            self.writers[which].stream.topic: {
                p: Offset(len(times)) for p, times in enumerate(self.writers[which].times)
            }
            for which in answered
        }
        before, self.ends = self.ends, ends_of(self.ends, self.now, Answer(found, found))
        self.time = ends_read(self.time, before, self.ends)

    @rule(limit=st.integers(1, 20), pace_ms=st.sampled_from((0, 0, 50)))
    def plan(self, limit: int, pace_ms: int) -> None:
        """The lane does what is next."""
        last, limits = LastBatch(self.query.end, self.planned_at), Limits(limit, pace_ms)
        self.time, decision = next_batch(self.time, last, self.ends, limits, self.now)
        event(type(decision).__name__)
        if isinstance(decision, Wait | Sample):
            return
        read_to = decision.end if isinstance(decision, Batch) else self.query.end
        if decision.event_ms is not None:
            self.check_moved(decision.event_ms, read_to)
        self.finish()
        if isinstance(decision, PassOn):
            self.query.marker = passed_on(self.query.marker, decision.event_ms, WRITTEN_MS)
            self.time = batch_finished(self.time, self.query.marker, 0, self.now)
            return
        self.planned_at = self.now
        self.query.execute(decision, self.writers)
        if not isinstance(self.shape, Stateless):
            self.finish()

    @rule(count=st.integers(1, 3), limit=st.integers(1, 3))
    def turn(self, count: int, limit: int) -> None:
        """News, and what the lane does by it."""
        for which in (0, 1):
            self.read_boundaries(which, count)
        self.read_ends((0, 1))
        self.plan(limit, 0)

    @rule()
    def finish(self) -> None:
        """The last batch is written; of a lane with state that is so before it plans again."""
        if self.query.writing is not None:
            self.query.marker, self.query.writing = self.query.writing, None
            self.time = batch_finished(self.time, self.query.marker, 3, self.now)

    @rule(milliseconds=st.integers(0, 400))
    def pass_time(self, milliseconds: int) -> None:
        """Time passes."""
        self.now = SteadyMillis(self.now + milliseconds)

    @rule(compacted=st.integers(0, 3))
    def restart_lane(self, compacted: int) -> None:
        """The lane restarts on another node; old boundaries may have been removed by compaction.

        It continues from its last marker, so what was being written is read again; and reads new
        partitions from their beginning.
        """
        self.query.writing = None
        for writer in self.writers:
            first = max(0, len(writer.published) - 1 - compacted)
            self.boundaries[writer.stream.topic] = first
        there = [at(w.stream, p) for w in self.writers for p in range(len(w.times))]
        end = {place: self.query.marker.end.get(place, Offset(0)) for place in there}
        self.query.marker = replace(self.query.marker, start=end, end=end, needed={})
        profile = lane(*INPUTS, shape=self.shape)
        self.time = begin(profile, self.query.marker, {}, self.now)
        self.ends = None
        self.planned_at = None
        self.moved = self.time.release.in_force_ms

    def check_moved(self, event_ms: Millis, read_to: Positions) -> None:
        """Compare event time with that before, and with every record of the model.

        While a lane without state writes a batch, the next one may carry the same event time.
        """
        if self.moved is not None:
            again = self.query.writing is not None and event_ms == self.moved
            assert event_ms > self.moved or again, "event time went back"
        self.moved = event_ms
        for writer in self.writers:
            assert all(time > event_ms for time in writer.from_offsets(read_to)), (
                "event time goes beyond records that are still to be read"
            )

    @invariant()
    def the_output_promise_is_within_the_input_promises(self) -> None:
        """The lane's promise is never greater than those of its inputs."""
        least = min(writer.promised for writer in self.writers)
        found = self.query.marker.boundary_ms
        slide_ms = self.shape.window.slide_ms if isinstance(self.shape, Windowed) else 0
        assert found is None or found <= least + slide_ms

    def teardown(self) -> None:
        """Deliver everything: the lane must reach the event time that the promises allow."""
        if not hasattr(self, "writers"):
            return
        for writer in self.writers:
            writer.transaction([], 1)
            writer.notice()
        self.restart_lane(3)
        target = min(writer.promised for writer in self.writers)
        for _ in range(100):
            for which in (0, 1):
                self.read_boundaries(which, len(self.writers[which].published))
            self.read_ends((0, 1))
            self.plan(1_000, 0)
            self.finish()
            self.pass_time(1_000)
            if self.reached(target):
                return
        message = f"event time stopped at {self.moved} short of {target}"
        raise AssertionError(message)

    def reached(self, target: int) -> bool:
        """Whether the event time in force is such that all below the target is closed."""
        if isinstance(self.shape, Stateless):
            return self.query.marker.boundary_ms == target
        if isinstance(self.shape, Windowed):
            slide = self.shape.window.slide_ms
            return target - slide < (self.query.marker.eviction_ms or 0) - 1 <= target
        return self.query.marker.eviction_ms == target


EventTime.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=40)
TestEventTime = EventTime.TestCase
