"""Decisions of a node's agent: starting, stopping, trying again, reporting."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import PublishStatus
from pipeline.agent.events import CatalogLost, Event, Tick
from pipeline.agent.rules.runs import FAILURES_MAX, SUCCESS_MS
from pipeline.agent.state import BackingOff, Fenced, Running, Starting, Tries
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.records import LaneState
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    RunNumber,
    SteadyMillis,
    stable_lane,
)
from pipeline.lanes.events import BatchFinished, LaneStarted, LaneStopped
from pipeline.lanes.start.facts import StateChoice
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.state import OnChange
from tests.unit.agent.support import (
    CARS,
    LANE,
    LEFT,
    LIFE,
    NETWORK,
    SPEED,
    Advance,
    Agent,
    Start,
    Stop,
    at,
    fresh_marker,
    read,
    wish,
)

OTHER = FragmentId(NETWORK, FragmentName("volume"))
START = Start(SPEED, LIFE, NetworkVersion(1))
MINUTE = 60_000


@pytest.fixture
def agent() -> Agent:
    """An agent that knows nothing yet."""
    return Agent()


@pytest.fixture
def running(agent: Agent) -> Agent:
    """An agent with one running lane over an external stream."""
    agent.want(wish())
    agent.started(CARS)
    return agent


def test_what_the_catalog_wants_is_started(agent: Agent) -> None:
    """Every fragment that should run here, and no other."""
    assert agent.want(wish(), wish(OTHER, running=False)) == (START,)
    assert agent.report().state is LaneState.STARTING
    assert agent.report(OTHER).state is LaneState.STOPPED


def test_a_catalog_that_is_read_again_changes_nothing(running: Agent) -> None:
    """Neither while starting nor while running."""
    other = Agent()
    other.want(wish())
    assert other.want(wish()) == ()
    assert running.want(wish()) == ()
    assert running.report().state is LaneState.RUNNING


def test_what_is_not_wanted_any_more_is_stopped_and_forgotten(running: Agent) -> None:
    """It stays known until its query has ended."""
    assert running.want() == (Stop(SPEED),)
    assert running.want() == ()
    assert running.stopped(None) == ()
    assert running.state.lanes == {}


def test_a_fragment_that_should_stand_still_is_stopped_and_shown(running: Agent) -> None:
    """Stopped is a wish like another."""
    assert running.want(wish(running=False)) == (Stop(SPEED),)
    running.stopped(None)
    assert running.report().state is LaneState.STOPPED
    assert running.want(wish()) == (START,)


def test_a_changed_plan_restarts_the_lane_at_once(running: Agent) -> None:
    """Stop, and as soon as it has stopped, start as the new version; this is no failure."""
    assert running.want(wish(version=2, digest="d2")) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(2)),)
    assert running.report().restarts == 0


def test_a_choice_about_the_state_restarts_the_lane_once(running: Agent) -> None:
    """The plan is the same; a lane that failed for good is tried again, too."""
    chosen = wish(choice=StateChoice(OnChange.EMPTY, Incarnation("life-1")))
    assert running.want(chosen) == (Stop(SPEED),)
    assert running.stopped(None) == (START,)
    assert running.want(chosen) == ()
    running.stopped("the log is too short", retry=False)
    assert running.report().state is LaneState.FAILED
    other = wish(choice=StateChoice(OnChange.REBUILD, Incarnation("life-1")))
    assert running.want(other) == (START,)


def test_a_fragment_of_which_only_the_topics_changed_restarts(running: Agent) -> None:
    """Its version says so: a lane knows its topics by the ids that they had at its deploy."""
    assert running.want(wish(version=2)) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(2)),)


def test_a_network_deployed_again_after_its_destruction_is_another_one(running: Agent) -> None:
    """The lane of the earlier life ends before one of the new life starts; its facts go with it."""
    running.finished({at(CARS, 0): 7})
    again = wish(life=NetworkLife("two"))
    assert running.want(again) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, NetworkLife("two"), NetworkVersion(1)),)
    lane = running.lane()
    assert (lane.marker, lane.batch_ms, lane.tries) == (None, 0, Tries())
    assert lane.epoch == 1


@pytest.mark.parametrize("fenced", [False, True])
def test_what_failed_in_an_earlier_life_starts_at_once_in_the_next(
    running: Agent, *, fenced: bool
) -> None:
    """Neither the error nor the wait of a lane that ended concerns the new network."""
    running.finished({at(CARS, 0): 7})
    running.stopped(retry=False, fenced=fenced)
    life = NetworkLife("two")
    assert running.want(wish(life=life)) == (Start(SPEED, life, NetworkVersion(1)),)
    report = running.report()
    assert (report.state, report.last_error, report.records_in) == (LaneState.STARTING, "", 0)


def test_a_stop_that_meets_a_starting_lane_is_repeated_when_it_runs(agent: Agent) -> None:
    """The start may have been too far on to hear the first one."""
    agent.want(wish())
    assert agent.want() == (Stop(SPEED),)
    assert agent.started(CARS) == (Stop(SPEED),)
    agent.stopped(None)
    assert agent.state.lanes == {}


def test_a_failed_lane_is_tried_again_after_a_wait(running: Agent) -> None:
    """Not before, and with the restart counted and the error shown."""
    assert running.stopped("the topic is gone") == ()
    report = running.report()
    assert (report.state, report.last_error) == (LaneState.RESTARTING, "the topic is gone")
    wait_ms = back_off_ms(SPEED, 1)
    assert running.tick(wait_ms - 1) == ()
    assert running.tick(1) == (START,)
    assert running.report().restarts == 1


def test_a_query_that_ends_unasked_has_failed(running: Agent) -> None:
    """Even without an error."""
    running.stopped(None)
    assert "without being asked" in running.report().last_error


def test_waits_double_up_to_a_minute_and_differ_by_fragment() -> None:
    """Lanes of one node do not all come back at once."""
    for failures in range(1, 50):
        full = min(60_000, 1_000 * 2 ** (failures - 1))
        assert full * 3 // 4 <= back_off_ms(SPEED, failures) <= full
    names = [FragmentId(NETWORK, FragmentName(f"f{n}")) for n in range(20)]
    assert len({back_off_ms(name, 5) for name in names}) > 10


def fail_often(agent: Agent, times: int, lasted_ms: int = 0) -> None:
    """Start and fail so many times."""
    for _ in range(times):
        epoch = agent.lane().epoch + 1
        agent.started(CARS, epoch=epoch)
        agent.tick(lasted_ms)
        agent.stopped(epoch=epoch)
        agent.tick(MINUTE)


def test_ten_failures_in_a_row_end_the_tries(agent: Agent) -> None:
    """The lane is shown as failed and not started again by time or by the same wish."""
    agent.want(wish())
    fail_often(agent, FAILURES_MAX - 1)
    assert agent.report().state is LaneState.STARTING
    agent.stopped(epoch=agent.lane().epoch)
    assert agent.report().state is LaneState.FAILED
    assert "given up after 10 failures" in agent.report().last_error
    assert agent.tick(24 * 60 * MINUTE) == ()
    assert agent.want(wish()) == ()


def test_an_outage_never_ends_the_tries(agent: Agent) -> None:
    """However long it lasts: a try about each minute, and the status names the cause."""
    agent.want(wish())
    for tries in range(1, 10 * FAILURES_MAX):
        agent.stopped("Kafka does not answer", epoch=tries, external=True)
        report = agent.report()
        assert (report.state, report.last_error) == (LaneState.WAITING, "Kafka does not answer")
        wait_ms = back_off_ms(SPEED, tries)
        assert agent.tick(wait_ms - 1) == ()
        assert agent.tick(1) == (START,)
    assert 45_000 <= wait_ms <= MINUTE


def test_an_outage_forgives_no_other_failure(agent: Agent) -> None:
    """Nine failures before it and one after it are ten."""
    agent.want(wish())
    for epoch in range(1, FAILURES_MAX):
        agent.stopped(epoch=epoch)
        agent.tick(MINUTE)
    agent.stopped(epoch=FAILURES_MAX, external=True)
    agent.tick(MINUTE)
    assert agent.report().state is LaneState.STARTING
    agent.stopped(epoch=FAILURES_MAX + 1)
    assert agent.report().state is LaneState.FAILED
    assert "`medusa resume`" in agent.report().last_error


def in_outage(agent: Agent) -> Agent:
    """An agent whose one lane was tried ten times without an answer of Kafka."""
    agent.want(wish())
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    for tries in range(1, 11):
        agent.stopped(epoch=tries, external=True)
        if tries < 10:
            agent.tick(MINUTE)
    agent.ends({})
    return agent


def test_a_lane_is_tried_soon_when_kafka_answers_again(agent: Agent) -> None:
    """Not after the minute that it backs off for; lanes of a node still not all at once."""
    in_outage(agent)
    assert agent.tick(5_000) == ()
    agent.ends({})
    assert agent.tick(back_off_ms(SPEED, 1)) == ()
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    assert agent.tick(back_off_ms(SPEED, 1) - 1) == ()
    assert agent.tick(1) == (START,)


def test_a_lane_is_tried_soon_when_the_catalog_answers_again(agent: Agent) -> None:
    """A claim needs it as much as Kafka."""
    in_outage(agent)
    agent.hear(CatalogLost())
    assert agent.want(wish()) == ()
    assert agent.tick(back_off_ms(SPEED, 1)) == (START,)


def test_an_answer_makes_no_lane_with_another_failure_be_tried_sooner(agent: Agent) -> None:
    """It backs off for what is wrong with itself."""
    in_outage(agent)
    for epoch in range(11, 15):
        agent.tick(MINUTE)
        agent.stopped(epoch=epoch)
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    assert agent.lane().phase == BackingOff(SteadyMillis(agent.steady_ms + back_off_ms(SPEED, 4)))


def test_five_minutes_of_success_forgive_earlier_failures(agent: Agent) -> None:
    """A lane that fails once a day is never given up."""
    agent.want(wish())
    fail_often(agent, 3 * FAILURES_MAX, lasted_ms=SUCCESS_MS)
    assert isinstance(agent.lane().phase, Starting)
    assert agent.lane().tries.failures == 1


def test_a_failure_that_no_other_try_can_mend_is_final_at_once(running: Agent) -> None:
    """Until something else is wanted."""
    running.stopped("the schema does not fit", retry=False)
    assert running.report().state is LaneState.FAILED
    assert running.tick(60 * MINUTE) == ()
    assert running.want(wish(version=2, digest="d2")) == (Start(SPEED, LIFE, NetworkVersion(2)),)
    assert running.report().last_error == ""


def test_a_failed_lane_that_is_stopped_and_wanted_again_is_tried_again(running: Agent) -> None:
    """People can make it try without changing anything else."""
    running.stopped("no", retry=False)
    assert running.want(wish(running=False)) == ()
    assert running.report().state is LaneState.STOPPED
    assert running.want(wish()) == (START,)


def test_a_fenced_lane_asks_the_catalog_first(running: Agent) -> None:
    """No time brings it back, only a catalog read after the fencing that still wants it here."""
    running.stopped("fenced", fenced=True)
    assert running.tick(60 * MINUTE) == ()
    assert running.want(wish()) == ()
    assert running.tick(back_off_ms(SPEED, 1) - 1) == ()
    assert running.tick(1) == (START,)


def test_a_fenced_lane_that_moved_elsewhere_is_forgotten(running: Agent) -> None:
    """The catalog no longer names this node."""
    running.stopped("fenced", fenced=True)
    assert running.want() == ()
    assert running.state.lanes == {}


def test_a_lane_that_is_fenced_while_it_stops_asks_the_catalog_too(running: Agent) -> None:
    """A redeploy must not restart a lane that somebody else has taken over."""
    running.want(wish(version=2, digest="d2"))
    assert running.stopped("fenced", fenced=True) == ()
    assert running.tick(60 * MINUTE) == ()
    assert running.want(wish(version=2, digest="d2")) == ()
    assert running.tick(MINUTE) == (Start(SPEED, LIFE, NetworkVersion(2)),)


def test_a_lane_that_is_fenced_again_and_again_is_given_up(agent: Agent) -> None:
    """Two who fight over a fragment do not do so in silence for ever."""
    agent.want(wish())
    for epoch in range(1, FAILURES_MAX + 1):
        agent.stopped("fenced", epoch=epoch, fenced=True)
        agent.want(wish())
        agent.tick(MINUTE)
    assert agent.report().state is LaneState.FAILED


def test_while_the_catalog_is_in_doubt_nothing_is_started(running: Agent) -> None:
    """Not after a failure, not after a wait; the next read lets it go on."""
    running.hear(CatalogLost())
    running.stopped()
    assert running.tick(60 * MINUTE) == ()
    assert running.report().state is LaneState.WAITING
    assert running.want(wish()) == (START,)


def test_while_the_catalog_is_in_doubt_running_lanes_go_on(running: Agent) -> None:
    """Their event time, too: Kafka fences them if somebody else took over."""
    running.hear(CatalogLost())
    told = running.finished({}, {at(CARS, 0): 90_000, at(CARS, 1): 95_000})
    assert told == (Advance(SPEED, Incarnation("life-1"), Millis(84_999)),)


def test_while_the_catalog_is_in_doubt_nothing_is_reported(running: Agent) -> None:
    """There is nowhere to write it to."""
    running.hear(CatalogLost())
    running.wait(MINUTE)
    assert running.hear_all(Tick()) == ()


def test_an_advance_names_the_incarnation_that_runs(agent: Agent) -> None:
    """Another life of the lane must not take it for its own."""
    agent.want(wish())
    agent.started(LEFT)
    agent.stopped()
    agent.tick(MINUTE)
    agent.started(LEFT, epoch=2)
    agent.watch_boundaries(LEFT)
    assert agent.promise(LEFT, 70_000, 0, 0) == (
        Advance(SPEED, Incarnation("life-2"), Millis(70_000)),
    )


def test_a_boundary_read_before_the_lane_started_moves_it_at_its_start(agent: Agent) -> None:
    """Nobody repeats it."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 70_000, 0, 0)
    assert agent.started(LEFT) == (Advance(SPEED, Incarnation("life-1"), Millis(70_000)),)


def test_a_lane_that_stops_is_told_nothing_more(running: Agent) -> None:
    """Its last batches are still counted."""
    running.want(wish(running=False))
    assert running.finished({at(CARS, 0): 5}, {at(CARS, 0): 9_000, at(CARS, 1): 9_000}) == ()
    marker = running.lane().marker
    assert marker is not None
    assert marker.end[at(CARS, 0)] == 5


def test_events_of_an_earlier_run_are_nothing_to_the_next(running: Agent) -> None:
    """They may still lie in the queue."""
    running.stopped()
    running.tick(MINUTE)
    assert running.finished({at(CARS, 0): 99}, run=1) == ()
    running.started(CARS, epoch=2)
    assert running.finished({at(CARS, 0): 99}, run=1) == ()
    assert running.stopped(epoch=1, run=1) == ()
    marker = running.lane().marker
    assert marker is not None
    assert marker.end[at(CARS, 0)] == 0
    assert isinstance(running.lane().phase, Running)


def test_events_of_fragments_that_are_not_here_are_ignored(agent: Agent) -> None:
    """A lane that was let go may still say its last words."""
    agent.want()
    assert agent.stopped() == ()
    assert agent.hear(BatchFinished(LANE, RunNumber(1), fresh_marker(CARS), 0, 1)) == ()


def test_what_cannot_happen_raises_and_changes_nothing(running: Agent) -> None:
    """A second start, a start nobody asked for, a second end, a batch before the start."""
    found, profile = fresh_marker(CARS, epoch=2), LaneProfile((CARS,), Stateless())
    before = running.state
    with pytest.raises(BrokenInvariantError, match="a lane started that was not asked to"):
        running.started(CARS)
    other, run = stable_lane(OTHER), RunNumber(1)
    with pytest.raises(BrokenInvariantError, match="was not asked to"):
        running.hear(LaneStarted(other, run, Epoch(2), found.incarnation, found, profile))
    with pytest.raises(BrokenInvariantError, match="run 2 of a lane whose last run is 1"):
        running.stopped(run=2)
    assert running.state == before
    running.stopped()
    with pytest.raises(BrokenInvariantError, match="backing off cannot have crashed"):
        running.stopped()
    running.tick(MINUTE)
    with pytest.raises(BrokenInvariantError, match="a batch finished in a lane that is starting"):
        running.hear(BatchFinished(LANE, RunNumber(2), found, 0, 1))


def test_a_status_is_due_at_once_then_when_it_changed_and_every_two_seconds(
    agent: Agent,
) -> None:
    """But never twice within a second."""

    def reports(event: Event) -> bool:
        return any(isinstance(effect, PublishStatus) for effect in agent.hear_all(event))

    assert reports(read(wish()))
    times = []
    for step in range(50):
        agent.wait(100 if step else 0)
        if step == 3:
            agent.started(CARS)
        if reports(Tick()):
            times.append(step * 100)
    assert times == [1_000, 3_000]


@given(
    st.lists(
        st.sampled_from(
            ["want", "unwant", "change", "lost", "start", "crash", "final", "fence", "tick"]
        ),
        max_size=60,
    )
)
def test_whatever_happens_no_lane_runs_twice_or_against_the_catalog(script: list[str]) -> None:
    """A start is only asked for when nothing runs, the catalog is known and wants it here."""
    agent, version, known, wanted, busy, epoch = Agent(), 1, False, False, False, 0
    for step in script:
        before = agent.state.lanes.get(LANE)
        effects: tuple[object, ...] = ()
        if step in ("want", "change"):
            version += step == "change"
            known = wanted = True
            effects = agent.want(wish(version=version, digest=f"d{version}"))
        elif step == "unwant":
            known, wanted = True, False
            effects = agent.want()
        elif step == "lost":
            known = False
            effects = agent.hear(CatalogLost())
        elif step == "start" and busy and agent.lane().running is None:
            epoch += 1
            effects = agent.started(CARS, epoch=epoch)
        elif step in ("crash", "final", "fence") and busy:
            busy = False
            effects = agent.hear(
                LaneStopped(
                    LANE,
                    agent.lane().run,
                    agent.lane().epoch,
                    "boom",
                    retry=step == "crash",
                    fenced=step == "fence",
                )
            )
        elif step == "tick":
            effects = agent.tick(7_000)
        if any(isinstance(effect, Start) for effect in effects):
            assert not busy
            assert known
            assert wanted
            assert before is None or not isinstance(before.phase, Fenced)
            busy = True


def test_a_topic_that_has_grown_restarts_its_lane(running: Agent) -> None:
    """Only a new start can read the new partition; what was read before is told no more."""
    assert running.ends({at(CARS, 0): 0, at(CARS, 1): 0}) == ()
    assert running.ends({at(CARS, 0): 0, at(CARS, 1): 0, at(CARS, 2): 5}) == (Stop(SPEED),)
    assert running.stopped(error=None) == (START,)
    assert running.lane().tries.restarts == 0
