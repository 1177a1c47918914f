"""Simulation of event time end to end, compared with a model that has every record.

Two writers append records to the partitions of their topics and promise boundaries; a lane reads
both in batches of arbitrary ranges; an agent gets the events of it late, in parts, and again after
restarts. The lane judges lateness as Spark does: by the watermark of the previous batch.
Topics get more partitions, which writer and lane read at different times. No record may ever be
late, in any order of events, and once all events are delivered the lane must have reached the event
time that the promises allow.
"""

from collections import deque
from dataclasses import dataclass, field, replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pipeline.agent.events import BoundaryRead
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput, LaneProfile
from pipeline.boundaries.promise import promise, watermark_for
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, RunNumber
from pipeline.lanes.events import BatchFinished, LaneStarted
from pipeline.markers.commit_marker import CommitMarker
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.profiles import examples
from tests.unit.agent.support import LANE, LEFT, RIGHT, Advance, Agent, at, deployed, fresh_marker
from tests.unit.boundaries.made_windows import ends_over

INPUTS = (LEFT, RIGHT)
BASE_MS = 1_000_000
LIFE = Incarnation("life-1")
HOUR_MS = 3_600_000
PARTITIONS_MAX = 4
SHAPES: tuple[Shape, ...] = (
    Joined(span_ms=20),
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
    published: list[BoundaryRead] = field(default_factory=list)

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
        boundary = Millis(self.promised)
        self.published.append(
            BoundaryRead(writer_of(self.stream), Epoch(self.epoch), boundary, ends)
        )


@dataclass
class Query:
    """The query of the lane: reads arbitrary ranges, judges lateness as Spark does."""

    shape: Shape
    marker: CommitMarker
    watermark: int = 0
    """In force in the next batch; 0 before any, as in Spark."""
    advances: deque[int] = field(default_factory=deque)

    def batch(self, writers: tuple[Writer, ...], limit: int, advances_read: int) -> CommitMarker:
        """Read a limited number of records of each partition and of advances."""
        last = self.marker
        late_ms = last.eviction_ms
        end = dict(last.end)
        for writer in writers:
            for partition, written in enumerate(writer.times):
                key = at(writer.stream, partition)
                if key not in end:  # the lane has not read it
                    continue
                times = written[end[key] : end[key] + limit]
                for time in times:
                    assert not self.late(time, late_ms), "a record of a derived stream is late"
                end[key] = Offset(end[key] + len(times))
        read = [self.advances.popleft() for _ in range(min(advances_read, len(self.advances)))]
        eviction_ms = Millis(self.watermark)
        if read and not isinstance(self.shape, Stateless):
            lead = watermark_for(self.shape, Millis(max(read)))
            self.watermark = max(self.watermark, lead)
        boundary_ms = promise(
            self.shape,
            eviction_ms=eviction_ms,
            advance_ms=Millis(max(read)) if read else None,
            previous_ms=last.boundary_ms,
        )
        self.marker = replace(
            last,
            batch=BatchId(last.batch + 1),
            start=last.end,
            end=end,
            late_ms=late_ms,
            eviction_ms=eviction_ms,
            boundary_ms=boundary_ms,
        )
        return self.marker

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
    """The state machine of two writers, a lane and its agent."""

    @initialize(shape=st.sampled_from(SHAPES))
    def begin(self, shape: Shape) -> None:
        """A lane without progress."""
        self.shape = shape
        self.writers = (Writer(LEFT), Writer(RIGHT))
        self.read_boundaries = {LEFT.topic: 0, RIGHT.topic: 0}
        self.query = Query(shape, replace(fresh_marker(*INPUTS), incarnation=LIFE))
        self.finished: deque[CommitMarker] = deque()
        self.epoch = 0
        self.sent: list[int] = []
        self.agent = Agent()
        self.restart_agent(0)

    def note(self, effects: tuple[object, ...]) -> None:
        """Send advances to the lane; compare each with every record of the model."""
        for effect in effects:
            if not isinstance(effect, Advance):
                continue
            assert effect.incarnation == LIFE
            assert not self.sent or effect.advance_ms > self.sent[-1], "an advance went back"
            self.sent.append(effect.advance_ms)
            self.query.advances.append(effect.advance_ms)
            time = self.agent.running().time
            for writer in self.writers:
                for partition, written in enumerate(writer.times):
                    position = time.positions.get(at(writer.stream, partition), 0)
                    assert all(one > effect.advance_ms for one in written[position:]), (
                        "an advance goes beyond records that are not finished"
                    )

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
    def poll_boundaries(self, which: int, count: int) -> None:
        """The agent reads more of a boundary topic."""
        writer = self.writers[which]
        for _ in range(count):
            number = self.read_boundaries[writer.stream.topic]
            if number < len(writer.published):
                self.read_boundaries[writer.stream.topic] = number + 1
                self.note(self.agent.receive(writer.published[number]))

    @rule(limit=st.integers(0, 6), advances_read=st.integers(0, 2))
    def run_batch(self, limit: int, advances_read: int) -> None:
        """The lane runs a batch; its agent gets the event later."""
        self.finished.append(self.query.batch(self.writers, limit, advances_read))

    @rule(count=st.integers(1, 3))
    def receive_batches(self, count: int) -> None:
        """The agent gets the events of finished batches, in order."""
        for _ in range(min(count, len(self.finished))):
            marker = self.finished.popleft()
            self.note(self.agent.receive(BatchFinished(LANE, RunNumber(1), marker, 3, 40)))

    @rule(milliseconds=st.integers(0, 400))
    def pass_time(self, milliseconds: int) -> None:
        """Time passes without an event."""
        self.note(self.agent.tick(milliseconds))

    @rule(milliseconds=st.integers(-5 * HOUR_MS, 2 * HOUR_MS))
    def set_clock(self, milliseconds: int) -> None:
        """The wall clock is set."""
        self.agent.ahead_ms += milliseconds

    @rule(compacted=st.integers(0, 3))
    def restart_agent(self, compacted: int) -> None:
        """The agent restarts; old boundaries may have been removed by compaction.

        The lane continues from its last marker, with the advances that it has not read yet, and
        reads new partitions from their beginning.
        """
        self.epoch += 1
        old = self.agent
        self.agent, self.sent = Agent(), []
        self.agent.steady_ms, self.agent.ahead_ms = old.steady_ms, old.ahead_ms
        self.finished.clear()
        for writer in self.writers:
            self.read_boundaries[writer.stream.topic] = max(
                0, len(writer.published) - 1 - compacted
            )
        marker = self.query.marker
        there = [at(w.stream, p) for w in self.writers for p in range(len(w.times))]
        end = {key: marker.end.get(key, Offset(0)) for key in there}
        self.query.marker = replace(marker, end=end)
        self.agent.read_catalog(deployed())
        self.agent.watch_boundaries(*INPUTS)
        profile = LaneProfile(INPUTS, self.shape)
        epoch, marker = Epoch(self.epoch), self.query.marker
        started = LaneStarted(LANE, RunNumber(1), epoch, LIFE, marker, profile)
        self.note(self.agent.receive(started))

    @invariant()
    def the_output_promise_is_within_the_input_promises(self) -> None:
        """The lane's promise is never greater than those of its inputs."""
        least = min(writer.promised for writer in self.writers)
        found = self.query.marker.boundary_ms
        slide_ms = self.shape.window.slide_ms if isinstance(self.shape, Windowed) else 0
        assert found is None or found <= least + slide_ms

    def teardown(self) -> None:
        """Deliver all events: the lane must reach the event time that the promises allow."""
        if not hasattr(self, "writers"):
            return
        for writer in self.writers:
            writer.transaction([], 1)
            writer.notice()
        self.restart_agent(3)
        target = min(writer.promised for writer in self.writers)
        for _ in range(100):
            for which in (0, 1):
                self.poll_boundaries(which, len(self.writers[which].published))
            self.run_batch(1_000, 1_000)
            self.receive_batches(len(self.finished))
            self.pass_time(1_000)
            if self.reached(target):
                return
        message = f"event time stopped at {self.sent[-1:]} short of {target}"
        raise AssertionError(message)

    def reached(self, target: int) -> bool:
        """Whether the event time in force is such that all below the target is closed."""
        if isinstance(self.shape, Stateless):
            return self.query.marker.boundary_ms == target
        if isinstance(self.shape, Windowed):
            slide = self.shape.window.slide_ms
            return target - slide < (self.query.marker.eviction_ms or 0) - 1 <= target
        return self.query.marker.eviction_ms == target


EventTime.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40)
TestEventTime = EventTime.TestCase
