"""The oldest positions that a lane still needs, compared with a model that keeps every row."""

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
        """A batch reads these event times and ends with a higher watermark."""
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

    def may_be_in_state(self, time: int, of: StreamName) -> bool:
        """By the semantics of the boxes: its window or session is open, or a partner may come."""
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

    def oldest_in_state(self, partition: InputPartition) -> int:
        """The offset of the first row that may be in the state; the end if there is none."""
        times = self.rows[partition]
        offsets = [
            offset
            for offset, time in enumerate(times)
            if self.may_be_in_state(time, partition.input)
        ]
        return offsets[0] if offsets else len(times)


def newest(progress: Mapping[InputPartition, list[int]]) -> dict[InputPartition, Millis]:
    """The largest time per partition that has any."""
    return {p: Millis(max(times)) for p, times in progress.items() if times}


@given(st.sampled_from([TEN, SLIDING, JOIN, OWNED, VISITS]), BATCHES)
@settings(max_examples=examples(60))
def test_every_row_that_may_be_in_state_is_at_or_after_the_needed_position(
    shape: Shape, batches: list[tuple[list[int], list[int], int]]
) -> None:
    """And needed positions never fall."""
    model = Model(shape)
    for left, right, rise in batches:
        before = model.needed
        model.batch((left, right), rise)
        for partition in PARTITIONS:
            assert before[partition] <= model.needed[partition] <= model.end[partition]
            assert model.needed[partition] <= model.oldest_in_state(partition)


@given(st.sampled_from([TEN, SLIDING, JOIN, OWNED, VISITS]), BATCHES, st.integers(0, 40))
@settings(max_examples=examples(60))
def test_needed_positions_are_correct_after_a_restart_from_the_marker(
    shape: Shape, batches: list[tuple[list[int], list[int], int]], restart_after: int
) -> None:
    """The log itself is lost; the marker's needed positions and progress are kept."""
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
            assert model.needed[partition] <= model.oldest_in_state(partition)


def test_rows_in_no_state_are_no_longer_needed() -> None:
    """The position rises to the first batch whose window is open, not only to the present batch."""
    model = Model(TEN)
    for time in (1, 11, 21, 31):
        model.batch(([time, time + 1], []), 0)
    model.batch(([], []), 24)
    assert model.needed == {PARTITIONS[0]: 6, PARTITIONS[1]: 0}
    model.batch(([], []), 20)
    assert model.needed == model.end


def test_a_stateless_lane_needs_no_record_that_it_has_read() -> None:
    """It has no state."""
    model = Model(Stateless())
    model.batch(([1, 2, 3], [4]), 0)
    assert model.needed == model.end


def test_a_partition_with_unknown_event_times_stays_needed() -> None:
    """From a marker without its progress the end of its rows cannot be computed."""
    marker = first_marker(WANTED, Incarnation("one"), ZERO, Millis(0))
    model = Model(TEN, end={PARTITIONS[0]: Offset(5), PARTITIONS[1]: Offset(0)})
    model.rows[PARTITIONS[0]] = [1] * 5
    model.log = resume(replace(marker, end=model.end))
    model.batch(([3], []), 10_000)
    assert model.needed == {PARTITIONS[0]: 0, PARTITIONS[1]: 0}


def test_the_log_is_bounded_and_its_newest_spans_are_exact() -> None:
    """A long log is joined to coarser spans, never to wrong ones."""
    model = Model(Windowed(TumblingWindow(1_000_000, 0)))
    for time in range(1, 5_000):
        model.batch(([time], []), 0)
        assert len(model.log.spans[PARTITIONS[0]]) <= SPANS_MAX
    spans = model.log.spans[PARTITIONS[0]]
    assert spans[0].start == 0
    assert [span.start for span in spans[-100:]] == list(range(4_899, 4_999))


@given(st.integers(1, 4), st.integers(1, 3_000))
@settings(max_examples=examples(15))
def test_a_coarser_log_is_still_correct(stride: int, watermark: int) -> None:
    """Joining two spans keeps the older start and the newer time."""
    model = Model(Joined(span_ms=0))
    for time in range(1, 700 * stride, stride):
        model.batch(([time], []), 0)
    model.batch(([], []), watermark)
    assert model.needed[PARTITIONS[0]] <= model.oldest_in_state(PARTITIONS[0])
