"""News of the polls for the lanes of a node."""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.ids import Epoch, Millis, NetworkLife, Offset, SteadyMillis, TopicName
from pipeline.spark.run.lane_news import UNCHANGED_MS, LaneNews
from pipeline.spark.run.lane_planner import LanePlanner
from tests.unit.boundaries.support import CARS, SPEED, START_MS, VOLUME, lane, marker, positions
from tests.unit.deploy.twins import TwinClock

SOON = SteadyMillis(START_MS + UNCHANGED_MS - 1)


class Told(LanePlanner):
    """A planner that records the ends that it gets."""

    def __init__(self, *inputs: ExternalInput | DerivedInput) -> None:
        super().__init__(lane(*inputs), TwinClock(), lambda _: None)
        self.ends: list[Ends] = []

    def ends_read(self, ends: Ends) -> None:
        """Record them."""
        self.ends.append(ends)
        super().ends_read(ends)


def ends(at_ms: SteadyMillis, by_topic: Mapping[TopicName, int]) -> Ends:
    """An answer about partition 0 of some topics."""
    return Ends(at_ms, {topic: {0: Offset(end)} for topic, end in by_topic.items()})


def promised(news: LaneNews, stream: DerivedInput, at_ms: int, epoch: int = 1) -> None:
    """A boundary is read that covers nothing yet to be read."""
    boundary = PendingBoundary(Millis(at_ms), {0: Offset(0)})
    news.boundary_read(writer_of(stream), Epoch(epoch), boundary)


def joined(news: LaneNews, *inputs: ExternalInput | DerivedInput) -> Told:
    """A lane that begins."""
    planner = Told(*inputs)
    start = {at: end for one in inputs for at, end in positions(one, 0).items()}
    news.join(planner, frozenset(one.topic for one in inputs), marker(start))
    return planner


def test_ends_reach_the_lanes_that_read_a_changed_topic() -> None:
    """No lane is woken by the records of others."""
    news = LaneNews()
    cars, speed = joined(news, CARS), joined(news, SPEED)
    news.ends_read(first := ends(START_MS, {CARS.topic: 1, SPEED.topic: 1}))
    news.ends_read(second := ends(SOON, {CARS.topic: 2, SPEED.topic: 1}))
    assert cars.ends == [first, second]
    assert speed.ends == [first]


def test_unchanged_ends_are_passed_on_once_in_a_while() -> None:
    """Silence is measured by them; measured from the last ones that were passed on."""
    news = LaneNews()
    cars = joined(news, CARS)
    answers = [ends(SteadyMillis(START_MS + 400 * n), {CARS.topic: 1}) for n in range(7)]
    for answer in answers:
        news.ends_read(answer)
    assert cars.ends == [answers[0], answers[3], answers[6]]


def test_a_topic_that_is_not_answered_is_news() -> None:
    """It may be unreachable."""
    news = LaneNews()
    cars = joined(news, CARS)
    news.ends_read(ends(START_MS, {CARS.topic: 1}))
    news.ends_read(missing := ends(SOON, {}))
    assert cars.ends[-1] is missing


def test_a_lane_begins_with_what_was_read_before() -> None:
    """Ends and boundaries: a writer that waits need not repeat its own."""
    news = LaneNews()
    news.watch([SPEED])
    promised(news, SPEED, 70_000)
    news.ends_read(ends(START_MS, {SPEED.topic: 0}))
    speed = joined(news, SPEED)
    assert speed.promised(SPEED.stream) == 70_000


def test_boundaries_reach_the_lanes_that_run() -> None:
    """Those of the writer that the node watches, under its newest epoch."""
    news = LaneNews()
    news.watch([SPEED])
    speed = joined(news, SPEED)
    promised(news, SPEED, 70_000, epoch=2)
    promised(news, SPEED, 80_000, epoch=1)
    assert speed.promised(SPEED.stream) == 70_000
    assert joined(news, SPEED).promised(SPEED.stream) == 70_000


def test_writers_that_are_not_watched_are_ignored() -> None:
    """And forgotten once they are no longer: the node keeps what it needs."""
    news = LaneNews()
    news.watch([SPEED])
    promised(news, SPEED, 70_000)
    promised(news, VOLUME, 70_000)
    news.watch([SPEED, VOLUME])
    assert joined(news, SPEED).promised(SPEED.stream) == 70_000
    assert joined(news, VOLUME).promised(VOLUME.stream) is None
    news.watch([VOLUME])
    news.watch([SPEED, VOLUME])
    assert joined(news, SPEED).promised(SPEED.stream) is None


def test_what_was_promised_in_an_earlier_life_of_the_network_does_not_count() -> None:
    """It was destroyed and deployed again: the node may see both as one change of the catalog."""
    news = LaneNews()
    first, second = (replace(SPEED, life=NetworkLife(life)) for life in ("first", "second"))
    news.watch([first])
    promised(news, first, 70_000)
    news.watch([first, VOLUME])
    assert joined(news, first).promised(SPEED.stream) == 70_000
    news.watch([second, VOLUME])
    assert joined(news, second).promised(SPEED.stream) is None


def test_activity_of_a_writer_is_kept_for_later_lanes() -> None:
    """As its boundaries are."""
    news, planner = LaneNews(), Told(SPEED)
    news.watch([SPEED])
    writer = writer_of(SPEED)
    news.activity_read(writer, Epoch(1), idle=True, at_ms=START_MS)
    news.activity_read(writer_of(VOLUME), Epoch(1), idle=True, at_ms=START_MS)
    time = news.join(planner, frozenset({SPEED.topic}), marker(positions(SPEED, 0)))
    assert time.writers[SPEED.stream].idle_since_ms == START_MS


def test_a_lane_that_has_left_gets_no_news() -> None:
    """Leaving twice is leaving."""
    news = LaneNews()
    news.watch([SPEED])
    speed = joined(news, SPEED)
    news.leave(speed)
    news.leave(speed)
    news.ends_read(ends(START_MS, {SPEED.topic: 1}))
    promised(news, SPEED, 70_000)
    assert speed.ends == []
    assert speed.promised(SPEED.stream) is None
