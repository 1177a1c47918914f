"""Event time end to end, against a model that knows every record.

Two writers append records to the partitions of their topics and promise boundaries; a lane reads
both in batches of its own cut; an agent hears of it all late, in pieces, and again after restarts.
The lane judges lateness as Spark does: what an earlier batch closed with is what this one drops by.
Topics get more partitions, which writer and lane notice at different times. No record may ever be
late, whatever the order of things, and once everything has been heard the lane must have come as
far as the promises allow.
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
from tests.unit.agent.support import LANE, LEFT, RIGHT, Advance, Agent, at, fresh_marker, wish
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
    """A fragment upstream: its topic's records, and the boundaries that it published.

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
        """Learn of new partitions, and publish a boundary that names them."""
        self.seen = len(self.times)
        self.publish()

    def publish(self) -> None:
        """Publish what is promised."""
        ends = {p: Offset(len(self.times[p])) for p in range(self.seen)}
        boundary = Millis(self.promised)
        self.published.append(
            BoundaryRead(writer_of(self.stream), Epoch(self.epoch), boundary, ends)
        )


@dataclass
class Query:
    """The lane's query: reads what it likes, judges lateness as Spark does."""

    shape: Shape
    marker: CommitMarker
    watermark: int = 0
    """In force in the next batch; 0 before any, as in Spark."""
    advances: deque[int] = field(default_factory=deque)

    def batch(self, writers: tuple[Writer, ...], limit: int, told: int) -> CommitMarker:
        """Read at most so many records of each partition and so many advances."""
        last = self.marker
        late_ms = last.eviction_ms
        end = dict(last.end)
        for writer in writers:
            for partition, written in enumerate(writer.times):
                key = at(writer.stream, partition)
                if key not in end:  # the lane does not know of it
                    continue
                times = written[end[key] : end[key] + limit]
                for time in times:
                    assert not self.late(time, late_ms), "a record of a derived stream is late"
                end[key] = Offset(end[key] + len(times))
        read = [self.advances.popleft() for _ in range(min(told, len(self.advances)))]
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
    """Everything that can happen between two writers, a lane and its agent."""

    @initialize(shape=st.sampled_from(SHAPES))
    def begin(self, shape: Shape) -> None:
        """A lane that has read nothing."""
        self.shape = shape
        self.writers = (Writer(LEFT), Writer(RIGHT))
        self.heard = {LEFT.topic: 0, RIGHT.topic: 0}
        self.query = Query(shape, replace(fresh_marker(*INPUTS), incarnation=LIFE))
        self.finished: deque[CommitMarker] = deque()
        self.epoch = 0
        self.sent: list[int] = []
        self.agent = Agent()
        self.restart_agent(0)

    def note(self, effects: tuple[object, ...]) -> None:
        """Advances go to the lane; each is checked against every record there is."""
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
                    known = time.positions.get(at(writer.stream, partition), 0)
                    assert all(one > effect.advance_ms for one in written[known:]), (
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
        """Somebody else takes the upstream fragment over and repeats its last promise."""
        writer = self.writers[which]
        writer.epoch += 1
        writer.transaction([], 0)

    @rule(which=st.integers(0, 1))
    def grow(self, which: int) -> None:
        """A topic gets another partition; nobody has noticed it yet."""
        if len(self.writers[which].times) < PARTITIONS_MAX:
            self.writers[which].times.append([])

    @rule(which=st.integers(0, 1))
    def notice(self, which: int) -> None:
        """A writer notices how many partitions there are."""
        self.writers[which].notice()

    @rule(which=st.integers(0, 1), count=st.integers(1, 5))
    def hear_boundaries(self, which: int, count: int) -> None:
        """The agent reads on in a topic of boundaries."""
        writer = self.writers[which]
        for _ in range(count):
            number = self.heard[writer.stream.topic]
            if number < len(writer.published):
                self.heard[writer.stream.topic] = number + 1
                self.note(self.agent.hear(writer.published[number]))

    @rule(limit=st.integers(0, 6), told=st.integers(0, 2))
    def run_batch(self, limit: int, told: int) -> None:
        """The lane runs a batch; its agent hears of it later."""
        self.finished.append(self.query.batch(self.writers, limit, told))

    @rule(count=st.integers(1, 3))
    def hear_batches(self, count: int) -> None:
        """The agent hears of finished batches, in order."""
        for _ in range(min(count, len(self.finished))):
            marker = self.finished.popleft()
            self.note(self.agent.hear(BatchFinished(LANE, RunNumber(1), marker, 3, 40)))

    @rule(milliseconds=st.integers(0, 400))
    def pass_time(self, milliseconds: int) -> None:
        """Nothing happens for a while."""
        self.note(self.agent.tick(milliseconds))

    @rule(milliseconds=st.integers(-5 * HOUR_MS, 2 * HOUR_MS))
    def set_clock(self, milliseconds: int) -> None:
        """Somebody sets the wall clock."""
        self.agent.ahead_ms += milliseconds

    @rule(compacted=st.integers(0, 3))
    def restart_agent(self, compacted: int) -> None:
        """The agent dies and comes back; old boundaries may be compacted away meanwhile.

        The lane continues from its last marker, with the advances that it has not read yet, and
        reads new partitions from their beginning.
        """
        self.epoch += 1
        old = self.agent
        self.agent, self.sent = Agent(), []
        self.agent.steady_ms, self.agent.ahead_ms = old.steady_ms, old.ahead_ms
        self.finished.clear()
        for writer in self.writers:
            self.heard[writer.stream.topic] = max(0, len(writer.published) - 1 - compacted)
        marker = self.query.marker
        there = [at(w.stream, p) for w in self.writers for p in range(len(w.times))]
        end = {key: marker.end.get(key, Offset(0)) for key in there}
        self.query.marker = replace(marker, end=end)
        self.agent.want(wish())
        self.agent.watch_boundaries(*INPUTS)
        profile = LaneProfile(INPUTS, self.shape)
        epoch, marker = Epoch(self.epoch), self.query.marker
        started = LaneStarted(LANE, RunNumber(1), epoch, LIFE, marker, profile)
        self.note(self.agent.hear(started))

    @invariant()
    def the_output_promise_holds(self) -> None:
        """What the lane promised never lies beyond what its inputs promised it."""
        least = min(writer.promised for writer in self.writers)
        found = self.query.marker.boundary_ms
        ahead = self.shape.window.slide_ms if isinstance(self.shape, Windowed) else 0
        assert found is None or found <= least + ahead

    def teardown(self) -> None:
        """Let everything be heard: the lane must come as far as the promises allow."""
        if not hasattr(self, "writers"):
            return
        for writer in self.writers:
            writer.transaction([], 1)
            writer.notice()
        self.restart_agent(3)
        target = min(writer.promised for writer in self.writers)
        for _ in range(100):
            for which in (0, 1):
                self.hear_boundaries(which, len(self.writers[which].published))
            self.run_batch(1_000, 1_000)
            self.hear_batches(len(self.finished))
            self.pass_time(1_000)
            if self.reached(target):
                return
        message = f"event time stopped at {self.sent[-1:]} short of {target}"
        raise AssertionError(message)

    def reached(self, target: int) -> bool:
        """Whether what is in force lets nothing more be closed or freed below the target."""
        if isinstance(self.shape, Stateless):
            return self.query.marker.boundary_ms == target
        if isinstance(self.shape, Windowed):
            slide = self.shape.window.slide_ms
            return target - slide < (self.query.marker.eviction_ms or 0) - 1 <= target
        return self.query.marker.eviction_ms == target


EventTime.TestCase.settings = settings(max_examples=examples(80), stateful_step_count=40)
TestEventTime = EventTime.TestCase
