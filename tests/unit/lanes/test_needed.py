"""The oldest positions that a lane still needs, against a model that keeps every row."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.ids import Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.needed import SPANS_MAX, BatchRead, NeededLog, after_batch, resume
from pipeline.lanes.start.facts import StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow
from tests.profiles import examples
from tests.unit.boundaries.made_sessions import sessions_of
from tests.unit.boundaries.made_windows import ends_over

CARS, OWNERS = StreamName("cars"), StreamName("owners")
PARTITIONS = tuple(InputPartition(s, TopicName(f"topic-{s}"), 0) for s in (CARS, OWNERS))
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="here")
ZERO: Positions = dict.fromkeys(PARTITIONS, Offset(0))
TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=4))
SLIDING = Windowed(SlidingWindow(size_ms=10, offset_ms=2, slide_ms=4))
JOIN = Joined(span_ms=25)
OWNED = Joined(span_ms=40, waits=True, passing=frozenset({CARS}))
VISITS = Sessions(SessionWindow(gap_ms=8, longest_ms=50))

ROWS = st.lists(st.integers(1, 300), max_size=4)
BATCHES = st.lists(st.tuples(ROWS, ROWS, st.integers(0, 30)), max_size=40)


@dataclass
class Model:
    """Every row of both partitions, the log under test, and a watermark that only rises."""

    shape: Shape
    rows: dict[InputPartition, list[int]] = field(
        default_factory=lambda: {p: [] for p in PARTITIONS}
    )
    log: NeededLog = field(default_factory=lambda: NeededLog({}))
    end: Positions = field(default_factory=lambda: ZERO)
    watermark: int = 0
    needed: Positions = field(default_factory=lambda: ZERO)

    def batch(self, read: tuple[list[int], list[int]], rise: int) -> None:
        """A batch reads these event times and closes with a watermark that rose."""
        start, newest = self.end, {}
        for partition, times in zip(PARTITIONS, read, strict=True):
            self.rows[partition].extend(times)
            if times:
                newest[partition] = Millis(max(times))
        self.watermark += rise
        self.end = {p: Offset(len(self.rows[p])) for p in PARTITIONS}
        eviction = Millis(self.watermark) if self.watermark else None
        found = BatchRead(start, self.end, newest, eviction)
        self.log, self.needed = after_batch(self.shape, self.log, found)

    def may_be_held(self, time: int, of: StreamName) -> bool:
        """By the meaning of the boxes: its window or session is open, or a row may come to meet."""
        if self.watermark == 0:
            return not isinstance(self.shape, Stateless)
        if isinstance(self.shape, Windowed):
            return ends_over(self.shape.window, time)[-1] > self.watermark
        if isinstance(self.shape, Sessions):
            window, every = self.shape.window, [t for rows in self.rows.values() for t in rows]
            (own,) = (s for s in sessions_of(window, every) if time in s)
            return own[-1] + window.gap_ms > self.watermark
        if isinstance(self.shape, Joined):
            reach = 0 if of in self.shape.passing else self.shape.span_ms
            return time + reach > self.watermark
        return False

    def oldest_held(self, partition: InputPartition) -> int:
        """The offset of the first row that may be held; the end if there is none."""
        times = self.rows[partition]
        held = [
            offset for offset, time in enumerate(times) if self.may_be_held(time, partition.input)
        ]
        return held[0] if held else len(times)


def newest(progress: Mapping[InputPartition, list[int]]) -> dict[InputPartition, Millis]:
    """The largest time per partition that has any."""
    return {p: Millis(max(times)) for p, times in progress.items() if times}


@given(st.sampled_from([TEN, SLIDING, JOIN, OWNED, VISITS]), BATCHES)
@settings(max_examples=examples(60))
def test_every_row_that_may_be_held_lies_at_or_after_the_needed_position(
    shape: Shape, batches: list[tuple[list[int], list[int], int]]
) -> None:
    """And the needed positions never go back."""
    model = Model(shape)
    for left, right, rise in batches:
        before = model.needed
        model.batch((left, right), rise)
        for partition in PARTITIONS:
            assert before[partition] <= model.needed[partition] <= model.end[partition]
            assert model.needed[partition] <= model.oldest_held(partition)


@given(st.sampled_from([TEN, SLIDING, JOIN, OWNED, VISITS]), BATCHES, st.integers(0, 40))
@settings(max_examples=examples(60))
def test_it_stays_right_after_a_restart_from_the_marker(
    shape: Shape, batches: list[tuple[list[int], list[int], int]], restart_after: int
) -> None:
    """The log itself does not survive; the marker's needed positions and progress do."""
    model = Model(shape)
    for number, (left, right, rise) in enumerate(batches):
        model.batch((left, right), rise)
        if number == restart_after:
            marker = first_marker(WANTED, Incarnation("one"), ZERO, Millis(0))
            progress = newest(model.rows)
            model.log = resume(
                replace(marker, end=model.end, needed=model.needed, progress=progress)
            )
        for partition in PARTITIONS:
            assert model.needed[partition] <= model.oldest_held(partition)


def test_what_no_state_holds_is_needed_no_more() -> None:
    """The position moves on to the first batch whose window is open, not only to the batch now."""
    model = Model(TEN)
    for time in (1, 11, 21, 31):
        model.batch(([time, time + 1], []), 0)
    model.batch(([], []), 24)
    assert model.needed == {PARTITIONS[0]: 6, PARTITIONS[1]: 0}
    model.batch(([], []), 20)
    assert model.needed == model.end


def test_a_stateless_lane_needs_nothing_that_it_has_read() -> None:
    """It keeps no rows."""
    model = Model(Stateless())
    model.batch(([1, 2, 3], [4]), 0)
    assert model.needed == model.end


def test_a_partition_of_unknown_event_times_stays_needed() -> None:
    """A marker without its progress cannot tell when its rows are over."""
    marker = first_marker(WANTED, Incarnation("one"), ZERO, Millis(0))
    model = Model(TEN, end={PARTITIONS[0]: Offset(5), PARTITIONS[1]: Offset(0)})
    model.rows[PARTITIONS[0]] = [1] * 5
    model.log = resume(replace(marker, end=model.end))
    model.batch(([3], []), 10_000)
    assert model.needed == {PARTITIONS[0]: 0, PARTITIONS[1]: 0}


def test_the_log_stays_bounded_and_its_newest_spans_exact() -> None:
    """A long state is known ever more coarsely, never wrongly."""
    model = Model(Windowed(TumblingWindow(1_000_000, 0)))
    for time in range(1, 5_000):
        model.batch(([time], []), 0)
        assert len(model.log.spans[PARTITIONS[0]]) <= SPANS_MAX
    spans = model.log.spans[PARTITIONS[0]]
    assert spans[0].start == 0
    assert [span.start for span in spans[-100:]] == list(range(4_899, 4_999))


@given(st.integers(1, 4), st.integers(1, 3_000))
@settings(max_examples=examples(15))
def test_a_log_that_was_made_coarser_is_still_right(stride: int, watermark: int) -> None:
    """Joining two spans keeps the older start and the newer time."""
    model = Model(Joined(span_ms=0))
    for time in range(1, 700 * stride, stride):
        model.batch(([time], []), 0)
    model.batch(([], []), watermark)
    assert model.needed[PARTITIONS[0]] <= model.oldest_held(PARTITIONS[0])
