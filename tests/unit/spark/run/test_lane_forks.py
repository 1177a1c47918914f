"""The forks of a stable lane: begun, steered and ended by its event time; errors stay there."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brokers.kafka_interface import NotNowError
from pipeline.availability import Availability, Policy
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, Steered
from pipeline.errors import RetryError
from pipeline.ids import BatchId, Millis
from pipeline.lanes.fork_phases import RETRY_MOST_MS, RETRY_MS, ForkPhase
from pipeline.spark.run import lane_forks
from pipeline.spark.run.lane_forks import MARKERS_KEPT, new_forks
from pipeline.spark.run.lane_inputs import LaneInputs
from pipeline.spark.run.lane_planner import LanePlanner
from tests.conftest import WaitFor
from tests.unit.boundaries.support import at
from tests.unit.boundaries.test_deadline import SOON
from tests.unit.spark.run.fork_world import WITHIN_S, X_MS, FakeFork, World, bounded, forks_of
from tests.unit.spark.run.test_lane_settings import settings


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeFork]]:
    """The forks that were begun."""
    made: list[FakeFork] = []
    monkeypatch.setattr(FakeFork, "made", made, raising=False)
    monkeypatch.setattr(FakeFork, "wrong", None, raising=False)
    monkeypatch.setattr(lane_forks, "Fork", FakeFork)
    yield made
    for one in made:
        one.ends.set()


def test_a_fork_begins_before_its_results_are_due(forks: list[FakeFork]) -> None:
    """At the stable lane's checkpoint, and its event time waits where that is."""
    world = World()
    assert world.look(5.0, 30, 5) is ForkPhase.ABSENT
    assert not forks
    assert world.look(1.5, 30, 5) is ForkPhase.PREPARING
    (fork,) = forks
    assert fork.steers == [Steered(most_ms=Millis(9))]
    assert fork.stable.markers() == {0: world.marker(0, None)}
    state = world.forks.state
    assert state.held is not None
    assert str(state.generation) == "3.1"
    assert state.held.causes == {at(SOON, 1)}


def test_without_a_cause_nothing_begins(forks: list[FakeFork]) -> None:
    """However long it lasts."""
    world = World()
    assert world.look(60.0, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert (forks, world.written) == ([], [])


def test_a_fork_is_cancelled_if_the_partition_returns_in_time(forks: list[FakeFork]) -> None:
    """Nothing of it is seen: no result, no done mark."""
    world = World()
    world.look(7.0, 30, 5)
    (fork,) = forks
    fork.publish(world.batch(("a", 20)))
    assert world.look(0.5, 30, 5) is ForkPhase.READY
    assert world.look(0.5, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert fork.asked.is_set()
    world.promise(1, 29)
    fork.publish(world.batch(("b", 20)))
    world.ended(fork)
    world.look(2.0, 30, 30, event_ms=29)
    assert world.written == []
    assert world.forks.state.generation is None


def test_a_fork_publishes_at_the_deadline_without_what_is_missing(forks: list[FakeFork]) -> None:
    """What it has computed before is not published: the stable lane has it as well."""
    world = World()
    world.look(7.0, 30, 5)
    (fork,) = forks
    fork.publish(world.batch(("early", 9)))
    assert world.look(2.0, 30, 5) is ForkPhase.READY
    assert world.written == []
    assert world.look(1.0, 30, 5) is ForkPhase.PUBLISHING
    assert fork.steers[-1] == Steered(frozenset({at(SOON, 1)}))
    fork.publish(world.batch(("a", 20), ("b", 20)))
    assert world.kinds == ["TentativeResult", "TentativeResult"]
    # The partition is back: what it brings is read, and the fork ends.
    world.promise(1, 29)
    assert world.look(0.5, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert fork.asked.is_set()
    world.ended(fork)
    world.look(1.0, 30, 30, event_ms=29)
    assert world.kinds == ["TentativeResult", "TentativeResult", "Undo", "Undo", "DoneMark"]


def test_with_delay_each_result_waits(forks: list[FakeFork]) -> None:
    """Event time moves only as far as it was wanted long enough ago."""
    world = World(Availability(X_MS, Policy.DELAY))
    fork = world.publishing(forks)
    assert fork.steers[-1] == Steered(frozenset({at(SOON, 1)}), Millis(29))


def test_a_second_partition_that_stays_away_steps_aside_too(forks: list[FakeFork]) -> None:
    """After its own deadline; the first one does not come back."""
    world = World()
    assert world.look(7.0, 30, 5, 30) is ForkPhase.PREPARING
    forks[-1].publish(world.batch())
    assert world.look(3.5, 30, 5, 30) is ForkPhase.PUBLISHING
    (fork,) = forks
    assert fork.steers[-1].without == {at(SOON, 1)}
    for _ in range(14):
        time, ends = world.time(90, 5, 30, event_ms=29)
        fork.observed = (replace(time, steered=fork.steers[-1]), ends)
        world.look(0.5, 90, 5, 30)
    assert fork.steers[-1].without == {at(SOON, 1)}
    for _ in range(6):
        time, ends = world.time(90, 5, 30, event_ms=29)
        fork.observed = (replace(time, steered=fork.steers[-1]), ends)
        world.look(0.5, 90, 5, 30)
    assert fork.steers[-1].without == {at(SOON, 1), at(SOON, 2)}
    assert world.phase is ForkPhase.PUBLISHING
    assert len(forks) == 1


def test_the_next_fork_waits_for_the_end_of_the_last_one(forks: list[FakeFork]) -> None:
    """Both would write the same results."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20)))
    assert world.look(0.5, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert world.look(10.0, 60, 30, event_ms=29) is ForkPhase.ABSENT
    assert len(forks) == 1
    world.ended(fork)
    assert world.look(1.0, 60, 30, event_ms=29) is ForkPhase.PREPARING
    state = world.forks.state
    assert str(state.generation) == "3.2"


# --- errors ---------------------------------------------------------------------------------------


def test_a_fork_that_fails_is_begun_again_after_a_rest(forks: list[FakeFork]) -> None:
    """Each time the rest is longer; the results of each are settled."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20)))
    world.ended(fork, RetryError("its disk is full"))
    assert world.look(0.5, 30, 5) is ForkPhase.RESTING
    assert world.look(0.5, 30, 5) is ForkPhase.RESTING
    assert world.look(RETRY_MS / 1000, 30, 5) is ForkPhase.PREPARING
    assert len(forks) == 2
    world.ended(forks[1], ValueError("unexpected"))
    assert world.look(0.5, 30, 5) is ForkPhase.RESTING
    assert world.look(1.5, 30, 5) is ForkPhase.RESTING
    assert world.look(1.5, 30, 5) is ForkPhase.PREPARING
    world.promise(1, 29)
    world.look(1.0, 30, 5)
    assert world.kinds == ["TentativeResult", "Undo", "DoneMark"]


def test_a_fork_that_has_published_for_long_rests_shortly(forks: list[FakeFork]) -> None:
    """However often others have failed before, while the same partition stayed away."""
    world = World()
    fork = world.publishing(forks)
    world.forks._failures = 10
    assert world.look(RETRY_MOST_MS / 1000, 30, 5) is ForkPhase.PUBLISHING
    world.ended(fork, RetryError("a broker is away"))
    assert world.look(0.5, 30, 5) is ForkPhase.RESTING
    assert world.forks._failures == 1


def test_a_fork_that_ends_by_itself_has_failed(forks: list[FakeFork]) -> None:
    """Else nothing would be published until the partition is back."""
    world = World()
    world.ended(world.publishing(forks))
    assert world.look(0.5, 30, 5) is ForkPhase.RESTING
    assert world.look(2.0, 30, 5) is ForkPhase.PREPARING
    assert len(forks) == 2


@pytest.mark.parametrize("wrong", [RetryError("no folder"), OSError("no space")])
def test_a_fork_that_cannot_be_made_rests(
    forks: list[FakeFork], wrong: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after an error that nobody expects."""
    world = World()
    monkeypatch.setattr(FakeFork, "wrong", wrong)
    assert world.look(7.0, 30, 5) is ForkPhase.RESTING
    monkeypatch.setattr(FakeFork, "wrong", None)
    assert world.look(2.0, 30, 5) is ForkPhase.PREPARING
    assert len(forks) == 1


def test_results_that_are_not_published_end_their_fork(forks: list[FakeFork]) -> None:
    """The error is raised on its own thread."""
    world = World()
    fork = world.publishing(forks)
    world.kafka.delete_topics((world.tentative,))
    with pytest.raises(Exception, match="does not exist"):
        fork.publish(world.batch(("a", 20)))


def test_an_error_in_settling_ends_no_fork(forks: list[FakeFork]) -> None:
    """A broker of the stable topic that does not answer may be the cause; it is tried again."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20), ("b", 200)))
    world.promise(1, 29)
    world.kafka.leaderless = (world.output,)
    assert world.look(3.0, 60, 5) is ForkPhase.PUBLISHING
    assert "leader" in world.forks.state.unsettled
    assert not fork.asked.is_set()
    fork.publish(world.batch(("c", 200)))
    world.kafka.leaderless = ()
    assert world.look(4.0, 60, 5) is ForkPhase.PUBLISHING
    assert world.forks.state.unsettled == ""
    assert world.kinds == ["TentativeResult"] * 3 + ["Undo"]


def test_settling_that_fails_is_tried_less_and_less_often(
    forks: list[FakeFork], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time is a line in the log."""
    world, tried = World(), list[float]()
    assert forks == []

    def fails(*_: Any) -> None:
        tried.append(world.clock.monotonic_s())
        raise NotNowError("no leader")

    monkeypatch.setattr(world.kafka, "end_offsets", fails)
    assert world.look(40.0, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert len(tried) == 6, "after 1, 2, 4, 8, 16 s"
    monkeypatch.undo()


def test_what_an_earlier_process_has_left_is_settled_without_a_fork(forks: list[FakeFork]) -> None:
    """As soon as the lane looks."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20)))
    again = World()
    again.kafka, again.id = world.kafka, world.id
    lane = replace(settings(None), fragment=world.fragment, topic_ids={world.output: str(world.id)})
    again.forks = forks_of(lane, world.host, again.planner)
    again.promise(7, 29)
    again.clock = world.clock
    assert again.look(1.0, 30, 30, event_ms=29) is ForkPhase.ABSENT
    assert again.kinds == ["TentativeResult", "Undo", "DoneMark"]


# --- the stable lane ------------------------------------------------------------------------------


@pytest.mark.parametrize("availability", [None, Availability(X_MS, Policy.SUSPEND)])
def test_a_lane_without_tentative_results_has_no_forks(availability: Availability | None) -> None:
    """Nothing of it looks at anything."""
    world = World()
    lane = replace(settings(None), fragment=bounded(availability))
    assert new_forks(lane, world.host, cast("LanePlanner", world.planner)) is None


def test_some_markers_are_kept() -> None:
    """The checkpoint that a fork links is that of one of the last batches."""
    world = World()
    for batch in range(1, 2 * MARKERS_KEPT):
        world.promise(batch, batch)
    kept = list(world.forks._markers)
    assert kept == [BatchId(batch) for batch in range(MARKERS_KEPT, 2 * MARKERS_KEPT)]


class Failing:
    """A planner of which nothing can be learned."""

    @property
    def observed(self) -> tuple[LaneTime, Ends | None] | None:
        """Fail."""
        raise ValueError("unexpected")


@pytest.mark.parametrize("planner", [Failing(), SimpleNamespace(observed=None)])
def test_nothing_is_raised_into_the_stable_lane(planner: object) -> None:
    """Whatever happens on the thread; it ends with the lane."""
    world = World()
    lane = replace(settings(None), fragment=world.fragment, topic_ids={world.output: world.id})
    found = forks_of(lane, world.host, planner)
    found.begin(Path(), world.marker(0, None), LaneInputs(world.host))
    thread = found._thread
    assert thread is not None
    found.finished(world.marker(1, 5), 10)
    thread.join(0.5)
    assert thread.is_alive()
    found.end()
    assert not thread.is_alive()


def test_the_end_of_the_lane_ends_a_fork_that_publishes(
    forks: list[FakeFork], wait_for: WaitFor
) -> None:
    """What it has published is left to the next owner."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20)))
    found, world.planner.observed = world.forks, None
    found.begin(Path(), world.marker(0, None), LaneInputs(world.host))
    ending = threading.Thread(target=found.end)
    ending.start()
    wait_for(fork.asked.is_set, "the fork is asked to end")
    assert ending.is_alive()
    fork.ends.set()
    ending.join(WITHIN_S)
    assert not ending.is_alive()
    fork.publish(world.batch(("b", 20)))
    assert world.kinds == ["TentativeResult"]


def test_a_lane_that_is_to_stop_publishes_nothing_more(forks: list[FakeFork]) -> None:
    """Its fork ends beside its last batch; what it would send, the next owner would not know."""
    world = World()
    fork = world.publishing(forks)
    world.forks.request_stop()
    assert fork.asked.is_set()
    fork.publish(world.batch(("a", 20)))
    assert world.kinds == []


def test_a_fork_whose_topic_was_read_again_is_replaced(forks: list[FakeFork]) -> None:
    """All that was published before counts as ended: of a fork that goes on nothing would come."""
    world = World()
    fork = world.publishing(forks)
    fork.publish(world.batch(("a", 20)))
    topic = world.forks._topic
    assert topic is not None
    topic.close()  # as when an undo was not delivered
    world.forks._settle_if_due()
    with pytest.raises(RetryError, match="has ended"):
        fork.publish(world.batch(("b", 20)))
