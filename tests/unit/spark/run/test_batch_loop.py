"""What a lane does between its batches."""

import json
import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.next_batch import Batch, Limits, PassOn, Sample
from pipeline.clock import steady_ms
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Epoch, Millis, Offset, StreamName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.cut import Cut
from pipeline.markers.positions import Positions
from pipeline.network.boxes.shape import Joined, Shape, Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.batch_loop import BatchLoop
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.query_runner import StoppingError
from pipeline.spark.run.steered_query import Answer
from pipeline.spark.write.sink import Sink
from tests.unit.boundaries.support import SPEED, lane, marker, positions
from tests.unit.deploy.twins import TwinClock

TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=0))
LIMITS = Limits(100)


class Passing(Sink):
    """A sink that only passes boundaries on; its planner learns of each, as from a lane."""

    def __init__(self, planner: LanePlanner, start: CommitMarker) -> None:
        self.planner, self.last = planner, start
        self.passed: list[int] = []
        self.planned: list[Batch] = []

    @property
    def marker(self) -> CommitMarker:
        """The last marker."""
        return self.last

    def plan(self, batch: Batch) -> None:
        """Record it."""
        self.planned.append(batch)

    def pass_on(self, boundary_ms: Millis) -> None:
        """Commit a marker."""
        self.passed.append(boundary_ms)
        self.last = replace(self.last, boundary_ms=boundary_ms)
        self.planner.finished(self.last, 0)


class Leaves(Lowered):
    """A fragment of which only the leaves are known."""

    def __init__(self) -> None:
        """It reads `SPEED`."""

    @property
    def leaves(self) -> tuple[StreamName, ...]:
        """One leaf."""
        return (SPEED.stream,)


class Script(LanePlanner):
    """A planner that plans what a test says; each plan takes so many seconds."""

    def __init__(
        self, clock: TwinClock, plans: list[Batch | PassOn | Sample | None], takes_s: float
    ) -> None:
        super().__init__(lane(SPEED), clock, lambda _: None)
        self._plans, self._takes_s, self._passing = plans, takes_s, clock

    def next(self, within_s: float | None = None) -> Batch | PassOn | Sample | None:
        """The next plan."""
        del within_s
        self._passing.sleep(self._takes_s)
        return self._plans.pop(0)


@dataclass
class Between:
    """A lane between its batches."""

    start: CommitMarker
    shape: Shape = TEN
    script: LanePlanner | None = None
    clock: TwinClock = field(default_factory=TwinClock)
    watched: int = 0
    fits: int | MedusaError = 100
    sampled: list[Positions] = field(default_factory=list)

    def __post_init__(self) -> None:
        planner = LanePlanner(lane(SPEED, shape=self.shape), self.clock, lambda _: None)
        self.planner = self.script or planner
        self.planner.begin(self.start, {}, None)
        self.sink = Passing(self.planner, self.start)
        self.stop = threading.Event()
        self.loop = BatchLoop(
            planner=self.planner,
            sink=self.sink,
            shape=self.shape,
            spark=object.__new__(SparkSession),
            clock=self.clock,
            stop=self.stop,
            watch=self.watch,
            sample=self.sample,
        )

    def watch(self) -> None:
        """Stop a lane that has nothing to do."""
        self.watched += 1
        if self.script is None:
            self.stop.set()

    def sample(self, start: Positions) -> int:
        """How many records fit, from there on."""
        self.sampled.append(start)
        if isinstance(self.fits, MedusaError):
            raise self.fits
        return self.fits

    def promise(self, at_ms: int, *offsets: int) -> None:
        """A boundary is read."""
        boundary = PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})
        self.planner.boundary_read(writer_of(SPEED), Epoch(1), boundary)

    def answer(self, *ends: int) -> None:
        """The brokers answer."""
        found = {p: Offset(end) for p, end in enumerate(ends)}
        self.planner.ends_read(Ends(steady_ms(self.clock), {SPEED.topic: found}))


@pytest.fixture(name="folder")
def with_batch_4(tmp_path: Path) -> Path:
    """A checkpoint with batch 4."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "4").write_text("v1\n{}\n{}", encoding="utf-8")
    return tmp_path


def planned(folder: Path) -> tuple[int, object]:
    """Watermark and ends of batch 5."""
    _, metadata, ends = (folder / "offsets" / "5").read_text().splitlines()
    return json.loads(metadata)["batchWatermarkMs"], json.loads(ends)


def test_a_query_begins_with_a_planned_batch(folder: Path) -> None:
    """With the watermark of its event time; windows end one above it."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10))
    lane_.promise(19, 3)
    lane_.answer(5)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    assert planned(folder) == (20, {SPEED.topic: {"0": 5}})
    assert lane_.planner.position == positions(SPEED, 5)


def test_a_batch_that_was_cut_is_planned_so(folder: Path) -> None:
    """Whatever could be read by now; the sink learns of each plan."""
    cut = Cut("1.5", positions(SPEED, 4), Millis(19), 1)
    lane_ = Between(replace(marker(positions(SPEED, 3), batch=4, eviction_ms=10), cut=cut))
    lane_.answer(5)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    assert planned(folder) == (20, {SPEED.topic: {"0": 4}})
    assert lane_.loop.answer() == Answer(positions(SPEED, 5), None)
    assert lane_.sink.planned == [
        Batch(positions(SPEED, 4), Millis(19)),
        Batch(positions(SPEED, 5), None),
    ]


def test_a_first_batch_may_begin_beyond_the_end_of_the_last_one(folder: Path) -> None:
    """As that of a fork whose plan was withdrawn; the checkpoint says where the query begins."""
    batch, clock = Batch(positions(SPEED, 9), None, positions(SPEED, 7)), TwinClock()
    begin = marker(positions(SPEED, 3), batch=4, eviction_ms=10)
    sampled = Sample(positions(SPEED, 7))
    lane_ = Between(begin, script=Script(clock, [sampled, batch], 0.1), clock=clock)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    _, _, before = (folder / "offsets" / "4").read_text().splitlines()
    assert json.loads(before) == {SPEED.topic: {"0": 7}}
    assert planned(folder) == (10, {SPEED.topic: {"0": 9}})
    assert lane_.sampled == [positions(SPEED, 7)]


@pytest.mark.parametrize(("fits", "end"), [(7_000, 7_003), (RetryError("busy"), 5_003)])
def test_a_batch_that_is_much_larger_than_the_last_one_is_sampled_first(
    folder: Path, fits: int | MedusaError, end: int
) -> None:
    """In the query as before it; without an answer it is no larger than is trusted."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10), fits=fits)
    lane_.answer(30_003)
    lane_.loop.begin(Leaves(), folder, Limits(20_000), planned=True)
    assert lane_.loop.answer() == Answer(positions(SPEED, end), None)
    assert lane_.sampled == [positions(SPEED, 3)]
    before = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10), fits=fits)
    before.answer(30_003)
    before.loop.begin(Leaves(), folder, Limits(20_000), planned=False)
    assert planned(folder) == (10, {SPEED.topic: {"0": end}})


def test_a_batch_without_a_movement_runs_under_the_watermark_before(folder: Path) -> None:
    """Which the checkpoint has to repeat."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10))
    lane_.answer(5)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    assert planned(folder) == (10, {SPEED.topic: {"0": 5}})


def test_a_batch_that_is_planned_already_is_executed_as_it_is(folder: Path) -> None:
    """The lane does not wait for another one."""
    lane_ = Between(marker(positions(SPEED, 3), batch=3, eviction_ms=10))
    lane_.answer(5)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=True)
    assert [file.name for file in (folder / "offsets").iterdir()] == ["4"]
    assert lane_.planner.position == positions(SPEED, 3)


def test_a_lane_that_is_stopped_before_its_first_batch_begins_no_query(folder: Path) -> None:
    """It watches meanwhile."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4))
    lane_.planner.stop()
    with pytest.raises(StoppingError):
        lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    assert lane_.watched == 1


def test_a_lane_without_state_passes_event_time_on_before_its_query_begins(folder: Path) -> None:
    """A query need not run for it, and it watches its topics although it never waits long."""
    plans = [PassOn(Millis(at_ms)) for at_ms in range(10, 40)]
    batch = Batch(positions(SPEED, 5), Millis(50))
    clock = TwinClock()
    script = Script(clock, [*plans, batch], 0.1)
    start = marker(positions(SPEED, 3), batch=4, boundary_ms=9)
    lane_ = Between(start, Stateless(), script, clock)
    lane_.loop.begin(Leaves(), folder, LIMITS, planned=False)
    assert lane_.sink.passed == list(range(10, 40))
    assert 2 <= lane_.watched <= 3
    assert planned(folder) == (0, {SPEED.topic: {"0": 5}})


def test_a_running_query_gets_the_end_and_the_watermark_of_its_next_batch() -> None:
    """Both at once."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10))
    lane_.planner.begin_query(lane_.start, LIMITS)
    lane_.answer(5)
    assert lane_.loop.answer() == Answer(positions(SPEED, 5), None)
    lane_.promise(19, 5)
    assert lane_.loop.answer() == Answer(positions(SPEED, 5), Millis(20))


@pytest.mark.parametrize("shape", [Joined(60_000), Stateless()])
def test_a_batch_of_a_lane_without_state_has_no_watermark(shape: Shape) -> None:
    """Its event time is in the marker alone."""
    start = marker(positions(SPEED, 3), batch=4, eviction_ms=10, boundary_ms=10)
    lane_ = Between(start, shape)
    lane_.planner.begin_query(lane_.start, LIMITS)
    lane_.promise(19, 3)
    lane_.answer(5)
    watermark_ms = None if shape == Stateless() else Millis(19)
    assert lane_.loop.answer() == Answer(positions(SPEED, 5), watermark_ms)


def test_event_time_is_passed_on_while_a_query_waits() -> None:
    """Between two batches, from the question for the next one."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, boundary_ms=9), Stateless())
    lane_.planner.begin_query(lane_.start, LIMITS)
    lane_.promise(19, 3)

    class Stopping(Passing):
        """The query is to end by then."""

        def pass_on(self, boundary_ms: Millis) -> None:
            """Commit a marker."""
            super().pass_on(boundary_ms)
            self.planner.end_query()

    sink = Stopping(lane_.planner, lane_.start)
    ended = Answer(positions(SPEED, 3), None, is_batch=False)
    assert replace(lane_.loop, sink=sink).answer() == ended
    assert sink.passed == [19]


def test_a_query_that_is_to_end_gets_the_end_of_its_last_batch() -> None:
    """So that no other one begins."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10))
    lane_.planner.begin_query(lane_.start, LIMITS)
    lane_.answer(5)
    last = lane_.loop.answer()
    assert last is not None
    lane_.answer(9)
    lane_.planner.end_query()
    assert lane_.loop.answer() == replace(last, is_batch=False)


def test_the_query_of_a_lane_that_is_to_stop_has_no_further_batch() -> None:
    """It ends by itself, instead of being stopped by the thread that looks once a second."""
    lane_ = Between(marker(positions(SPEED, 3), batch=4, eviction_ms=10))
    lane_.planner.begin_query(lane_.start, LIMITS)
    lane_.answer(5)
    lane_.loop.stop.set()
    lane_.planner.stop()
    assert lane_.loop.answer() is None
