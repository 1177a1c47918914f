"""Planner of a lane's batches: news from any thread, decisions for the lane's own."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import STABLE, LaneTime, Steered, writer_of
from pipeline.boundaries.next_batch import Batch, Limits, PassOn, Sample
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.clock import steady_ms
from pipeline.errors import BrokenInvariantError
from pipeline.heartbeats.steps import Doing
from pipeline.ids import BatchId, Epoch, Millis, Offset, SteadyMillis, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.cut import Cut
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Joined, Shape, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from pipeline.spark.run.lane_planner import REPORT_MS, LanePlanner
from tests.conftest import WaitFor
from tests.unit.boundaries.support import CARS, SPEED, STRICT_CARS, at, lane, marker, positions
from tests.unit.deploy.twins import TwinClock

JOIN = Joined(60_000)
TEN = Windowed(TumblingWindow(size_ms=10_000, offset_ms=0))
BEGUN = marker(
    positions(STRICT_CARS, 2, 5), progress={at(STRICT_CARS, 0): 95_001, at(STRICT_CARS, 1): 5_000}
)
SOON_S = 30.0
"""Deadline of what happens at once."""


class Planning:
    """A planner with a clock of its own, and what it reported."""

    def __init__(
        self,
        *inputs: ExternalInput | DerivedInput,
        start: CommitMarker,
        shape: Shape | None = None,
        pace_ms: int = 0,
    ) -> None:
        """Begin a lane and its first query."""
        self.clock, self.start = TwinClock(), start
        self.reports: list[LaneTime] = []
        self.planner = LanePlanner(lane(*inputs, shape=shape), self.clock, self.reports.append)
        self.planner.begin(start, {}, None)
        self.planner.begin_query(start, Limits(100, pace_ms))

    def answer(self, lane_input: ExternalInput | DerivedInput, *ends: int) -> None:
        """The brokers answer."""
        found = {p: Offset(end) for p, end in enumerate(ends)}
        self.planner.ends_read(Ends(steady_ms(self.clock), {lane_input.topic: found}))

    def promise(self, at_ms: int, *offsets: int) -> None:
        """A boundary of `SPEED` is read."""
        boundary = PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})
        self.planner.boundary_read(writer_of(SPEED), Epoch(1), boundary)

    def next(self) -> Batch | PassOn | Sample | None:
        """What is planned now, without waiting."""
        return self.planner.next(0)


@pytest.fixture
def elsewhere() -> Iterator[ThreadPoolExecutor]:
    """Another thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool


def executed(end: Positions, eviction_ms: int | None = None) -> BatchFacts:
    """A batch as Spark has executed it."""
    return BatchFacts(
        batch=BatchId(0),
        end=end,
        late_ms=None,
        eviction_ms=None if eviction_ms is None else Millis(eviction_ms),
        records=3,
        bad=0,
        unknown=(),
        late=0,
        largest={},
    )


def test_batches_follow_each_other() -> None:
    """Each one begins where the last one ends, written or not."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    assert lane_.next() is None
    assert lane_.planner.position == positions(CARS, 2, 5)
    lane_.answer(CARS, 4, 5)
    assert lane_.next() == Batch(positions(CARS, 4, 5), None)
    assert lane_.planner.position == positions(CARS, 4, 5)
    assert lane_.next() is None
    lane_.answer(CARS, 4, 9)
    assert lane_.next() == Batch(positions(CARS, 4, 9), None)


def test_a_waiting_lane_is_woken_by_news(elsewhere: ThreadPoolExecutor) -> None:
    """It need not look."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    waiting = elsewhere.submit(lane_.planner.next)
    lane_.answer(CARS, 4, 5)
    assert waiting.result(SOON_S) == Batch(positions(CARS, 4, 5), None)


def test_a_waiting_lane_ends_at_once(elsewhere: ThreadPoolExecutor) -> None:
    """Its question has to be answered before Spark can be stopped."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    for end in (lane_.planner.end_query, lane_.planner.stop):
        lane_.planner.begin_query(lane_.start, Limits(100))
        waiting = elsewhere.submit(lane_.planner.next)
        end()
        assert waiting.result(SOON_S) is None


def test_a_lane_plans_again_for_its_next_query_unless_it_is_stopped() -> None:
    """A query ends where another one begins, at the last marker."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    lane_.answer(CARS, 4, 9)
    assert lane_.next() is not None
    lane_.planner.end_query()
    lane_.answer(CARS, 5, 9)
    assert lane_.next() is None
    lane_.planner.begin_query(lane_.start, Limits(100))
    assert lane_.next() == Batch(positions(CARS, 5, 9), None)
    lane_.planner.stop()
    lane_.planner.begin_query(lane_.start, Limits(100))
    assert lane_.next() is None


def test_a_batch_is_one_step_until_the_lane_asks_again() -> None:
    """Between two looks it may talk to Kafka; before and after a query it waits for nothing."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    step, clock = lane_.planner.step, lane_.clock
    assert step.age[0] is Doing.QUERY
    assert lane_.next() is None
    assert step.age == (Doing.REQUEST, 0)
    lane_.answer(CARS, 4, 5)
    assert lane_.next() is not None
    clock.sleep(70.0)
    assert step.age == (Doing.BATCH, 70_000)
    lane_.planner.stop()
    assert lane_.next() is None
    assert step.age == (Doing.QUERY, 0)


def test_a_waiting_lane_makes_a_step_with_each_look(
    elsewhere: ThreadPoolExecutor, wait_for: WaitFor
) -> None:
    """So a wait is not long, however long nothing comes."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    waiting = elsewhere.submit(lane_.planner.next)
    wait_for(lambda: lane_.planner.step.age[0] is Doing.WAIT, "the wait")
    lane_.clock.sleep(30.0)
    lane_.planner.go_on()
    wait_for(lambda: lane_.planner.step.age == (Doing.WAIT, 0), "another look")
    lane_.planner.stop()
    assert waiting.result(SOON_S) is None


def test_silent_partitions_are_left_out_beside_others() -> None:
    """Each reason by itself; event time says since when they are silent."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    lane_.planner.silent({(CARS.topic, 0): SteadyMillis(7)})
    lane_.planner.unchecked(frozenset({(CARS.topic, 1)}))
    lane_.answer(CARS, 4, 9)
    assert lane_.next() is None
    lane_.planner.unchecked(frozenset())
    assert lane_.next() is None
    lane_.answer(CARS, 4, 9)
    assert lane_.next() == Batch(positions(CARS, 2, 9), None)
    assert lane_.planner.observed is not None
    assert lane_.planner.observed[0].silent == {(CARS.topic, 0): 7}
    lane_.planner.silent({})
    lane_.answer(CARS, 4, 9)
    assert lane_.next() == Batch(positions(CARS, 4, 9), None)


def test_batches_keep_the_pace() -> None:
    """From the plan of one to the plan of the next."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)), pace_ms=200)
    lane_.answer(CARS, 4, 5)
    assert lane_.next() is not None
    lane_.answer(CARS, 6, 5)
    lane_.clock.sleep(0.199)
    assert lane_.next() is None
    lane_.clock.sleep(0.001)
    assert lane_.next() is not None


def test_nothing_is_planned_before_the_lane_has_begun() -> None:
    """News by then is no reason either: it is kept elsewhere."""
    planner = LanePlanner(lane(CARS), TwinClock(), lambda _: None)
    planner.ends_read(Ends(steady_ms(TwinClock()), {}))
    with pytest.raises(BrokenInvariantError):
        planner.next(0)


def test_event_time_moves_once_the_marker_is_known() -> None:
    """A movement is planned once."""
    start = marker(positions(SPEED, 3), eviction_ms=9)
    lane_ = Planning(SPEED, start=start, shape=JOIN)
    lane_.promise(19, 3)
    lane_.promise(29, 4)
    assert lane_.next() == Batch(positions(SPEED, 3), Millis(19))
    assert lane_.planner.promised(SPEED.stream) == 19
    lane_.planner.finished(marker(positions(SPEED, 3), batch=0, eviction_ms=19), 3)
    assert lane_.next() is None
    lane_.planner.finished(marker(positions(SPEED, 4), batch=1, eviction_ms=19), 3)
    assert lane_.planner.promised(SPEED.stream) == 29


def test_a_lane_without_state_passes_on_each_boundary_once() -> None:
    """When its marker is written."""
    lane_ = Planning(SPEED, start=marker(positions(SPEED, 3), boundary_ms=9))
    lane_.promise(19, 3)
    assert lane_.next() == PassOn(Millis(19))
    lane_.planner.finished(marker(positions(SPEED, 3), boundary_ms=19), 0)
    lane_.clock.sleep(1)
    assert lane_.next() is None


def test_an_executed_batch_is_compared_with_its_plan() -> None:
    """Also when it is executed once more, since it met new schemas."""
    start = marker(positions(SPEED, 3), eviction_ms=9)
    lane_ = Planning(SPEED, start=start, shape=JOIN)
    lane_.promise(19, 3)
    lane_.answer(SPEED, 5)
    assert lane_.next() == Batch(positions(SPEED, 5), Millis(19))
    for _ in range(2):
        assert lane_.planner.executed(start, executed(positions(SPEED, 5), 19)) == 19
    with pytest.raises(BrokenInvariantError, match="up to offset 5 and executed up to 4"):
        lane_.planner.executed(start, executed(positions(SPEED, 4), 19))
    with pytest.raises(BrokenInvariantError, match="under watermark 19 and executed under 9"):
        lane_.planner.executed(start, executed(positions(SPEED, 5), 9))


def test_a_batch_that_an_earlier_run_planned_sets_the_position() -> None:
    """Its event time is only in the checkpoint."""
    lane_ = Planning(CARS, start=marker(positions(CARS, 2, 5)))
    lane_.answer(CARS, 9, 9)
    assert lane_.planner.executed(lane_.start, executed(positions(CARS, 4, 5))) is None
    assert lane_.planner.position == positions(CARS, 4, 5)
    assert lane_.next() == Batch(positions(CARS, 9, 9), None)


def test_event_time_is_reported_now_and_then() -> None:
    """What is not reported at once is so by the next look of the waiting lane."""
    lane_ = Planning(SPEED, start=marker(positions(SPEED, 3), boundary_ms=9))
    lane_.answer(SPEED, 3)
    reported = len(lane_.reports)
    lane_.promise(8, 3)
    lane_.clock.sleep((REPORT_MS - 1) / 1_000)
    assert lane_.next() is None
    assert len(lane_.reports) == reported == 1
    lane_.clock.sleep(0.001)
    assert lane_.next() is None
    assert len(lane_.reports) == 2
    assert lane_.reports[-1].writers[SPEED.stream].covered_ms == 8


def test_a_lane_that_becomes_idle_or_active_reports_it_at_once() -> None:
    """Its readers wait for it; so it is checked in a batch too."""
    start = marker(positions(CARS, 5), progress={at(CARS, 0): 90_000})
    lane_ = Planning(CARS, start=start, shape=JOIN)
    for _ in range(12):
        lane_.answer(CARS, 5)
        lane_.next()
        lane_.clock.sleep(1)
    assert lane_.reports[-1].idle
    lane_.answer(CARS, 5)
    lane_.answer(CARS, 6)
    assert not lane_.reports[-1].idle


def test_a_batch_that_was_cut_comes_first_and_once() -> None:
    """It waits for no news; a new query with the same marker plans it again."""
    cut = Cut("1.5", positions(CARS, 3, 5), Millis(9_000), 1)
    start = replace(marker(positions(CARS, 2, 5)), cut=cut)
    lane_ = Planning(CARS, start=start, shape=JOIN)
    expected = Batch(positions(CARS, 3, 5), Millis(9_000))
    assert lane_.next() == expected
    assert lane_.planner.executed(start, executed(positions(CARS, 3, 5), 9_000)) == 9_000
    assert lane_.next() is None
    lane_.answer(CARS, 4, 5)
    assert lane_.next() == Batch(positions(CARS, 4, 5), None)
    lane_.planner.begin_query(start, Limits(100))
    assert lane_.next() == expected


def test_a_batch_that_was_cut_waits_for_partitions_that_are_not_checked() -> None:
    """Only for those of which it reads records."""
    start = replace(marker(positions(CARS, 2, 5)), cut=Cut("1.5", positions(CARS, 3, 5), None, 1))
    lane_ = Planning(CARS, start=start)
    lane_.planner.unchecked(frozenset({(CARS.topic, 0)}))
    assert lane_.next() is None
    lane_.planner.unchecked(frozenset({(CARS.topic, 1)}))
    assert lane_.next() == Batch(positions(CARS, 3, 5), None)


def test_a_batch_that_was_cut_is_tried_again_although_a_partition_is_silent() -> None:
    """No other batch may come before it; the lane starts again after a few tries."""
    start = replace(marker(positions(CARS, 2, 5)), cut=Cut("1.5", positions(CARS, 3, 5), None, 1))
    lane_ = Planning(CARS, start=start)
    lane_.planner.silent({(CARS.topic, 0): SteadyMillis(7)})
    assert lane_.next() == Batch(positions(CARS, 3, 5), None)


# --- forks ----------------------------------------------------------------------------------------


def test_what_steps_aside_is_not_read_and_not_waited_for() -> None:
    """The ends that are known already do not count either; afterwards it is read again."""
    lane_ = Planning(STRICT_CARS, start=BEGUN, shape=TEN)
    lane_.answer(STRICT_CARS, 4, 9)
    lane_.planner.steer(Steered(frozenset({at(STRICT_CARS, 1)})))
    assert lane_.next() == Batch(positions(STRICT_CARS, 4, 5), Millis(89_999))
    end = positions(STRICT_CARS, 4, 5)
    written = replace(BEGUN, batch=BatchId(0), end=end, eviction_ms=Millis(90_000))
    lane_.planner.finished(written, 1)
    lane_.answer(STRICT_CARS, 4, 9)
    assert lane_.next() is None
    lane_.planner.steer(STABLE)
    assert lane_.next() is None, "its end is not known before the next answer"
    lane_.answer(STRICT_CARS, 4, 9)
    assert lane_.next() == Batch(positions(STRICT_CARS, 4, 9), None)


def test_event_time_does_not_pass_the_limit_of_a_fork() -> None:
    """It reads on."""
    lane_ = Planning(STRICT_CARS, start=BEGUN, shape=TEN)
    away = frozenset({at(STRICT_CARS, 1)})
    lane_.planner.steer(Steered(away, Millis(50_000)))
    lane_.answer(STRICT_CARS, 2, 5)
    assert lane_.next() == Batch(positions(STRICT_CARS, 2, 5), Millis(49_999))
    lane_.planner.steer(Steered(away, Millis(9)))
    lane_.answer(STRICT_CARS, 4, 5)
    assert lane_.next() == Batch(positions(STRICT_CARS, 4, 5), None)


def test_a_batch_that_begins_elsewhere_is_as_large_as_what_it_reads() -> None:
    """Not as all that was in the topic before: then what follows would count as sampled."""
    topic = TopicName("tolls.speed.tentative")

    def there(offset: int) -> Positions:
        return {InputPartition(SPEED.stream, topic, 0): Offset(offset)}

    def offered(end: int) -> Steered:
        complete = PendingBoundary(Millis(19_999), {0: Offset(end)})
        begin, cut_ms = {0: Offset(1_000_000)}, Millis(9_999)
        return Steered(
            tentative=(
                TentativeInput(SPEED.stream, SPEED.topic, topic, "2.1", cut_ms, begin, complete),
            )
        )

    start = marker({**positions(SPEED, 3), **there(0)}, eviction_ms=10_000)
    lane_ = Planning(SPEED, start=start, shape=TEN)
    lane_.planner.begin_query(start, Limits(100_000))
    lane_.promise(9_999, 3)
    lane_.answer(SPEED, 3)
    lane_.planner.steer(offered(1_000_004))
    expected = Batch({**positions(SPEED, 3), **there(1_000_004)}, Millis(19_999), there(1_000_000))
    assert lane_.next() == expected
    executed_ = replace(start, batch=BatchId(0), end=expected.end, eviction_ms=Millis(20_000))
    lane_.planner.finished(executed_, 1)
    lane_.planner.steer(offered(1_050_000))
    assert lane_.next() == Sample()


def test_a_lane_can_be_steered_before_it_begins() -> None:
    """As a fork is; what is left out stays so."""
    clock, reports = TwinClock(), list[LaneTime]()
    planner = LanePlanner(lane(STRICT_CARS, shape=TEN), clock, reports.append)
    assert planner.observed is None
    steered = Steered(frozenset({at(STRICT_CARS, 1)}), Millis(7))
    planner.steer(steered)
    assert planner.observed is None
    ends = Ends(steady_ms(clock), {STRICT_CARS.topic: {0: Offset(4), 1: Offset(9)}})
    time = planner.begin(BEGUN, {}, ends)
    assert time.steered == steered
    observed = planner.observed
    assert observed is not None
    assert observed[0] is time
    assert observed[1] is not None
    assert observed[1].by_topic == {STRICT_CARS.topic: {0: 4}}


def test_a_waiting_fork_is_woken_when_it_is_steered(elsewhere: ThreadPoolExecutor) -> None:
    """It does not wait for other news."""
    lane_ = Planning(STRICT_CARS, start=BEGUN, shape=TEN)
    lane_.answer(STRICT_CARS, 2, 5)
    waiting = elsewhere.submit(lane_.planner.next)
    lane_.planner.steer(Steered(frozenset({at(STRICT_CARS, 1)})))
    assert waiting.result(SOON_S) == Batch(positions(STRICT_CARS, 2, 5), Millis(89_999))
