"""What the polls of a node read reaches the lanes that run, and those that start later."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, writer_of
from pipeline.boundaries.next_batch import Batch, Limits
from pipeline.boundaries.profile import DerivedInput, LaneProfile
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicId, TopicName
from pipeline.network.boxes.shape import Stateless
from pipeline.spark.run.lane_news import UNCHANGED_MS, LaneNews
from pipeline.spark.run.lane_planner import LanePlanner
from tests.unit.agent.support import LEFT, RIGHT, fresh_marker
from tests.unit.deploy.twins import TwinClock


class _Planner(LanePlanner):
    """A planner that notes which ends it gets."""

    def __init__(self, profile: LaneProfile, report: Callable[[LaneTime], None]) -> None:
        super().__init__(profile, TwinClock(), report)
        self.got: list[Ends] = []

    def ends_read(self, ends: Ends) -> None:
        """As it is done, and noted."""
        self.got.append(ends)
        super().ends_read(ends)


class _Lane:
    """A lane over some derived inputs that takes part in the news of its node."""

    def __init__(self, news: LaneNews, *inputs: DerivedInput) -> None:
        self.reported: list[LaneTime] = []
        profile = LaneProfile(inputs, Stateless())
        self.planner = _Planner(profile, self.reported.append)
        topics = frozenset(one.topic for one in inputs)
        self.began = news.join(self.planner, topics, fresh_marker(*inputs))

    @property
    def time(self) -> LaneTime:
        """Its event time, as it was reported last."""
        return self.reported[-1] if self.reported else self.began


@pytest.fixture
def news() -> LaneNews:
    """The news of a node that watches one derived input."""
    found = LaneNews()
    found.watch({LEFT})
    return found


def _promise(news: LaneNews, of: DerivedInput, at_ms: int, *offsets: int) -> None:
    """A boundary of an input's writer is read, for partitions 0, 1, …."""
    positions = {partition: Offset(offset) for partition, offset in enumerate(offsets)}
    boundary = PendingBoundary(Millis(at_ms), positions)
    news.boundary_read(writer_of(of), Epoch(1), boundary)


def _ends(read_at_ms: int, offset: int, topic: TopicName = LEFT.topic) -> Ends:
    return Ends(SteadyMillis(read_at_ms), {topic: {0: Offset(offset), 1: Offset(0)}})


def test_a_boundary_reaches_the_lanes_that_read_its_topic(news: LaneNews) -> None:
    """No other lane is woken by it."""
    left, right = _Lane(news, LEFT), _Lane(news, RIGHT)
    _promise(news, LEFT, 499, 0, 0)
    assert left.planner.promised(LEFT.stream) == 499
    assert left.time.writers[LEFT.stream].covered_ms == 499
    assert right.planner.promised(RIGHT.stream) is None
    assert right.reported == []


def test_a_boundary_counts_for_a_lane_once_it_has_read_up_to_it(news: LaneNews) -> None:
    """Until then it is pending."""
    lane = _Lane(news, LEFT)
    _promise(news, LEFT, 499, 0, 0)
    _promise(news, LEFT, 599, 5, 0)
    assert lane.planner.promised(LEFT.stream) == 499
    marker = fresh_marker(LEFT)
    end = {at: Offset(5 if at.partition == 0 else 0) for at in marker.end}
    lane.planner.finished(replace(marker, end=end), 0)
    assert lane.planner.promised(LEFT.stream) == 599


def test_what_was_read_before_a_lane_starts_counts_from_its_start(news: LaneNews) -> None:
    """It is not published again."""
    _promise(news, LEFT, 70_000, 0, 0)
    news.activity_read(writer_of(LEFT), Epoch(1), idle=True, at_ms=SteadyMillis(5))
    writer = _Lane(news, LEFT).began.writers[LEFT.stream]
    assert (writer.covered_ms, writer.idle_at_ms) == (70_000, 5)


def test_the_activity_of_a_writer_reaches_its_readers(news: LaneNews) -> None:
    """Only of a writer whose topic the node watches."""
    lane = _Lane(news, LEFT, RIGHT)
    for one in (LEFT, RIGHT):
        news.activity_read(writer_of(one), Epoch(1), idle=True, at_ms=SteadyMillis(7))
    assert lane.time.writers[LEFT.stream].idle_at_ms == 7
    assert lane.time.writers[RIGHT.stream].idle_at_ms is None


def test_boundaries_are_kept_while_their_topic_is_watched(news: LaneNews) -> None:
    """Also when another input is added: a writer that is quiet publishes its last one once."""
    _promise(news, LEFT, 499, 0, 0)
    news.watch({LEFT, RIGHT})
    assert _Lane(news, LEFT).began.writers[LEFT.stream].covered_ms == 499


def test_boundaries_of_a_deleted_topic_are_removed(news: LaneNews) -> None:
    """The recreated topic has the same name and writer, and another id."""
    _promise(news, LEFT, 1_009, 0, 0)
    again = replace(LEFT, topic_id=TopicId("left-2"))
    news.watch({again})
    _promise(news, LEFT, 1_010, 0, 0)
    lane = _Lane(news, again)
    assert lane.began.writers[LEFT.stream].covered_ms is None
    _promise(news, again, 499, 0, 0)
    assert lane.planner.promised(LEFT.stream) == 499
    news.watch({LEFT})
    assert _Lane(news, LEFT).began.writers[LEFT.stream].covered_ms is None


def test_a_lane_gets_ends_that_have_changed_and_others_once_a_second(news: LaneNews) -> None:
    """Silence is measured by ends that have not changed; of other topics it needs none."""
    lane = _Lane(news, LEFT)
    first, moved, elsewhere = _ends(0, 1), _ends(20, 2), _ends(40, 9, RIGHT.topic)
    elsewhere = replace(elsewhere, by_topic={**moved.by_topic, **elsewhere.by_topic})
    for ends in (first, replace(first, read_at_ms=SteadyMillis(10)), moved, elsewhere):
        news.ends_read(ends)
    assert lane.planner.got == [first, moved]
    due = replace(moved, read_at_ms=SteadyMillis(20 + UNCHANGED_MS))
    news.ends_read(replace(due, read_at_ms=SteadyMillis(due.read_at_ms - 1)))
    news.ends_read(due)
    assert lane.planner.got == [first, moved, due]


def test_a_lane_starts_with_the_ends_that_were_read_last(news: LaneNews) -> None:
    """It need not wait for the next answer of the brokers."""
    news.ends_read(_ends(0, 3))
    lane = _Lane(news, LEFT)
    lane.planner.begin_query(fresh_marker(LEFT), Limits(10))
    found = lane.planner.next(0.0)
    assert isinstance(found, Batch)
    assert sorted(found.end.values()) == [0, 3]


def test_a_lane_that_has_left_gets_no_more_news(news: LaneNews) -> None:
    """And is not kept in memory."""
    lane = _Lane(news, LEFT)
    news.ends_read(_ends(0, 1))
    news.leave(lane.planner)
    before = list(lane.reported)
    _promise(news, LEFT, 499, 0, 0)
    news.ends_read(_ends(20, 2))
    assert lane.reported == before
    assert lane.planner.promised(LEFT.stream) is None
    news.leave(lane.planner)
