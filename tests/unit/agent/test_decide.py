"""Agent decisions: starts, stops, retries, reports."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import PublishStatus
from pipeline.agent.events import CatalogLost, Event, Tick
from pipeline.agent.rules.runs import FAILURES_MAX, SUCCESS_MS
from pipeline.agent.state import BackingOff, Fenced, Running, Starting, Tries
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.fragment_status import LaneState
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    NetworkLife,
    NetworkVersion,
    RunNumber,
    SteadyMillis,
    stable_lane,
)
from pipeline.lanes.events import BatchFinished, LaneStarted, LaneStopped, LaneTimed
from pipeline.lanes.start.facts import StateChoice
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.state import OnChange
from tests.unit.agent.support import (
    CARS,
    LANE,
    LIFE,
    NETWORK,
    SPEED,
    Agent,
    Start,
    Stop,
    at,
    deployed,
    fresh_marker,
    read,
)

OTHER = FragmentId(NETWORK, FragmentName("volume"))
START = Start(SPEED, LIFE, NetworkVersion(1))
MINUTE = 60_000


@pytest.fixture
def agent() -> Agent:
    """An agent in its initial state."""
    return Agent()


@pytest.fixture
def running(agent: Agent) -> Agent:
    """An agent with one running lane over an external stream."""
    agent.read_catalog(deployed())
    agent.started(CARS)
    return agent


def test_desired_fragments_are_started(agent: Agent) -> None:
    """Every fragment assigned to this node, and no other."""
    assert agent.read_catalog(deployed(), deployed(OTHER, running=False)) == (START,)
    assert agent.report().state is LaneState.STARTING
    assert agent.report(OTHER).state is LaneState.STOPPED


def test_an_unchanged_catalog_changes_nothing(running: Agent) -> None:
    """Neither while starting nor while running."""
    other = Agent()
    other.read_catalog(deployed())
    assert other.read_catalog(deployed()) == ()
    assert running.read_catalog(deployed()) == ()
    assert running.report().state is LaneState.RUNNING


def test_a_lane_no_longer_desired_is_stopped_and_removed(running: Agent) -> None:
    """Its state is kept until its query has ended."""
    assert running.read_catalog() == (Stop(SPEED),)
    assert running.read_catalog() == ()
    assert running.stopped(None) == ()
    assert running.state.lanes == {}


def test_a_stopped_fragment_is_stopped_and_reported(running: Agent) -> None:
    """Stopped is a desired state."""
    assert running.read_catalog(deployed(running=False)) == (Stop(SPEED),)
    running.stopped(None)
    assert running.report().state is LaneState.STOPPED
    assert running.read_catalog(deployed()) == (START,)


def test_a_changed_plan_restarts_the_lane_at_once(running: Agent) -> None:
    """Stop, then start the new version immediately; this is no failure."""
    assert running.read_catalog(deployed(version=2, digest="d2")) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(2)),)
    assert running.report().restarts == 0


def test_a_choice_about_the_state_restarts_the_lane_once(running: Agent) -> None:
    """The plan is the same; a permanently failed lane is retried, too."""
    chosen = deployed(choice=StateChoice(OnChange.EMPTY, Incarnation("life-1")))
    assert running.read_catalog(chosen) == (Stop(SPEED),)
    assert running.stopped(None) == (START,)
    assert running.read_catalog(chosen) == ()
    running.stopped("the log is too short", retry=False)
    assert running.report().state is LaneState.FAILED
    other = deployed(choice=StateChoice(OnChange.REBUILD, Incarnation("life-1")))
    assert running.read_catalog(other) == (START,)


def test_a_fragment_with_changed_topics_restarts(running: Agent) -> None:
    """Its version differs: a lane identifies its topics by the ids at its deploy."""
    assert running.read_catalog(deployed(version=2)) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(2)),)


def test_a_network_deployed_again_after_destroy_is_a_new_one(running: Agent) -> None:
    """The lane of the earlier life ends before one of the new life starts; its state is removed."""
    running.finished({at(CARS, 0): 7})
    again = deployed(life=NetworkLife("two"))
    assert running.read_catalog(again) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, NetworkLife("two"), NetworkVersion(1)),)
    lane = running.lane()
    assert (lane.marker, lane.batch_ms, lane.tries) == (None, 0, Tries())
    assert lane.epoch == 1


@pytest.mark.parametrize("fenced", [False, True])
def test_failures_of_an_earlier_life_do_not_delay_the_next(running: Agent, *, fenced: bool) -> None:
    """Neither its error nor its backoff applies to the new network."""
    running.finished({at(CARS, 0): 7})
    running.stopped(retry=False, fenced=fenced)
    life = NetworkLife("two")
    assert running.read_catalog(deployed(life=life)) == (Start(SPEED, life, NetworkVersion(1)),)
    report = running.report()
    assert (report.state, report.last_error, report.records_in) == (LaneState.STARTING, "", 0)


def test_a_stop_of_a_starting_lane_is_repeated_when_it_runs(agent: Agent) -> None:
    """The start may have been past the point at which it reads the first request."""
    agent.read_catalog(deployed())
    assert agent.read_catalog() == (Stop(SPEED),)
    assert agent.started(CARS) == (Stop(SPEED),)
    agent.stopped(None)
    assert agent.state.lanes == {}


def test_a_failed_lane_is_retried_after_a_backoff(running: Agent) -> None:
    """Not earlier, with the restart counted and the error reported."""
    assert running.stopped("the topic is gone") == ()
    report = running.report()
    assert (report.state, report.last_error) == (LaneState.RESTARTING, "the topic is gone")
    wait_ms = back_off_ms(SPEED, 1)
    assert running.tick(wait_ms - 1) == ()
    assert running.tick(1) == (START,)
    assert running.report().restarts == 1


def test_a_query_that_ends_without_a_request_has_failed(running: Agent) -> None:
    """Even without an error."""
    running.stopped(None)
    assert "without being asked" in running.report().last_error


def test_backoff_doubles_up_to_a_minute_with_jitter_per_fragment() -> None:
    """Lanes of one node do not all restart at once."""
    for failures in range(1, 50):
        full = min(60_000, 1_000 * 2 ** (failures - 1))
        assert full * 3 // 4 <= back_off_ms(SPEED, failures) <= full
    names = [FragmentId(NETWORK, FragmentName(f"f{n}")) for n in range(20)]
    assert len({back_off_ms(name, 5) for name in names}) > 10


def fail_often(agent: Agent, times: int, lasted_ms: int = 0) -> None:
    """Start and fail this many times."""
    for _ in range(times):
        epoch = agent.lane().epoch + 1
        agent.started(CARS, epoch=epoch)
        agent.tick(lasted_ms)
        agent.stopped(epoch=epoch)
        agent.tick(MINUTE)


def test_ten_failures_in_a_row_are_permanent(agent: Agent) -> None:
    """The lane is reported as failed; neither time nor the same desired state starts it again."""
    agent.read_catalog(deployed())
    fail_often(agent, FAILURES_MAX - 1)
    assert agent.report().state is LaneState.STARTING
    agent.stopped(epoch=agent.lane().epoch)
    assert agent.report().state is LaneState.FAILED
    assert "given up after 10 failures" in agent.report().last_error
    assert agent.tick(24 * 60 * MINUTE) == ()
    assert agent.read_catalog(deployed()) == ()


def test_an_outage_is_never_a_permanent_failure(agent: Agent) -> None:
    """However long it lasts: a retry about each minute, and the status contains the cause."""
    agent.read_catalog(deployed())
    for tries in range(1, 10 * FAILURES_MAX):
        agent.stopped("Kafka does not answer", epoch=tries, external=True)
        report = agent.report()
        assert (report.state, report.last_error) == (LaneState.WAITING, "Kafka does not answer")
        wait_ms = back_off_ms(SPEED, tries)
        assert agent.tick(wait_ms - 1) == ()
        assert agent.tick(1) == (START,)
    assert 45_000 <= wait_ms <= MINUTE


def test_an_outage_does_not_reset_the_failure_count(agent: Agent) -> None:
    """Nine failures before it and one after it are ten."""
    agent.read_catalog(deployed())
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
    """An agent whose one lane was started ten times while Kafka was unreachable."""
    agent.read_catalog(deployed())
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    for tries in range(1, 11):
        agent.stopped(epoch=tries, external=True)
        if tries < 10:
            agent.tick(MINUTE)
    agent.ends({})
    return agent


def test_a_lane_is_retried_soon_when_kafka_is_reachable_again(agent: Agent) -> None:
    """Not after its backoff of a minute; lanes of a node still not all at once."""
    in_outage(agent)
    assert agent.tick(5_000) == ()
    agent.ends({})
    assert agent.tick(back_off_ms(SPEED, 1)) == ()
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    assert agent.tick(back_off_ms(SPEED, 1) - 1) == ()
    assert agent.tick(1) == (START,)


def test_a_lane_is_retried_soon_when_the_catalog_is_reachable_again(agent: Agent) -> None:
    """A claim needs it as much as Kafka."""
    in_outage(agent)
    agent.receive(CatalogLost())
    assert agent.read_catalog(deployed()) == ()
    assert agent.tick(back_off_ms(SPEED, 1)) == (START,)


def test_recovery_of_a_server_does_not_shorten_other_backoffs(agent: Agent) -> None:
    """Their failures have another cause."""
    in_outage(agent)
    for epoch in range(11, 15):
        agent.tick(MINUTE)
        agent.stopped(epoch=epoch)
    agent.ends({at(CARS, 0): 0, at(CARS, 1): 0})
    assert agent.lane().phase == BackingOff(SteadyMillis(agent.steady_ms + back_off_ms(SPEED, 4)))


def test_five_minutes_of_success_reset_the_failure_count(agent: Agent) -> None:
    """A lane that fails once a day never fails permanently."""
    agent.read_catalog(deployed())
    fail_often(agent, 3 * FAILURES_MAX, lasted_ms=SUCCESS_MS)
    assert isinstance(agent.lane().phase, Starting)
    assert agent.lane().tries.failures == 1


def test_a_failure_that_no_retry_can_fix_is_permanent(running: Agent) -> None:
    """Until the desired state changes."""
    running.stopped("the schema does not fit", retry=False)
    assert running.report().state is LaneState.FAILED
    assert running.tick(60 * MINUTE) == ()
    assert running.read_catalog(deployed(version=2, digest="d2")) == (
        Start(SPEED, LIFE, NetworkVersion(2)),
    )
    assert running.report().last_error == ""


def test_stop_and_start_of_a_failed_lane_retries_it(running: Agent) -> None:
    """Users can force a retry without another change."""
    running.stopped("no", retry=False)
    assert running.read_catalog(deployed(running=False)) == ()
    assert running.report().state is LaneState.STOPPED
    assert running.read_catalog(deployed()) == (START,)


def test_a_fenced_lane_waits_for_a_read_of_the_catalog(running: Agent) -> None:
    """Time does not restart it, only a later read of the catalog that still assigns it here."""
    running.stopped("fenced", fenced=True)
    assert running.tick(60 * MINUTE) == ()
    assert running.read_catalog(deployed()) == ()
    assert running.tick(back_off_ms(SPEED, 1) - 1) == ()
    assert running.tick(1) == (START,)


def test_a_fenced_lane_assigned_elsewhere_is_removed(running: Agent) -> None:
    """The catalog no longer names this node."""
    running.stopped("fenced", fenced=True)
    assert running.read_catalog() == ()
    assert running.state.lanes == {}


def test_a_lane_fenced_while_it_stops_waits_for_the_catalog_too(running: Agent) -> None:
    """A redeploy must not restart a lane that another node has taken over."""
    running.read_catalog(deployed(version=2, digest="d2"))
    assert running.stopped("fenced", fenced=True) == ()
    assert running.tick(60 * MINUTE) == ()
    assert running.read_catalog(deployed(version=2, digest="d2")) == ()
    assert running.tick(MINUTE) == (Start(SPEED, LIFE, NetworkVersion(2)),)


def test_a_repeatedly_fenced_lane_fails_permanently(agent: Agent) -> None:
    """Two owners of a fragment must not fence each other for ever without an error."""
    agent.read_catalog(deployed())
    for epoch in range(1, FAILURES_MAX + 1):
        agent.stopped("fenced", epoch=epoch, fenced=True)
        agent.read_catalog(deployed())
        agent.tick(MINUTE)
    assert agent.report().state is LaneState.FAILED


def test_nothing_starts_while_the_session_is_in_doubt(running: Agent) -> None:
    """Neither after a failure nor after a backoff; the next read of the catalog ends this."""
    running.receive(CatalogLost())
    running.stopped()
    assert running.tick(60 * MINUTE) == ()
    assert running.report().state is LaneState.WAITING
    assert running.read_catalog(deployed()) == (START,)


def test_running_lanes_continue_while_the_session_is_in_doubt(running: Agent) -> None:
    """And are followed: Kafka fences them if another node has taken over."""
    running.receive(CatalogLost())
    assert running.finished({at(CARS, 0): 5}, {at(CARS, 0): 90_000}, boundary_ms=84_999) == ()
    marker = running.lane().marker
    assert marker is not None
    assert marker.boundary_ms == running.running().time.release.in_force_ms == 84_999


def test_nothing_is_reported_while_the_session_is_in_doubt(running: Agent) -> None:
    """The catalog cannot be written."""
    running.receive(CatalogLost())
    running.wait(MINUTE)
    assert running.receive_all(Tick()) == ()


def test_the_last_batches_of_a_stopping_lane_are_counted(running: Agent) -> None:
    """And its event time is followed until it has ended."""
    running.read_catalog(deployed(running=False))
    assert running.finished({at(CARS, 0): 5}, {at(CARS, 0): 9_000, at(CARS, 1): 9_000}) == ()
    marker = running.lane().marker
    assert marker is not None
    assert marker.end[at(CARS, 0)] == 5
    assert running.running().time.positions[at(CARS, 0)] == 5


def test_the_event_time_of_a_lane_is_what_it_reported_last(running: Agent) -> None:
    """A report of an earlier run, of a lane that has ended or was released changes nothing."""
    report = LaneTimed(LANE, RunNumber(1), replace(running.running().time, steps_ms=70_000))
    assert running.receive(report) == ()
    assert running.running().time == report.time
    running.stopped()
    before = running.lane()
    running.receive(report)
    assert running.lane() == before
    running.tick(MINUTE)
    running.started(CARS, epoch=2)
    running.receive(report)
    assert running.running().time.steps_ms is None
    running.read_catalog()
    running.stopped(error=None)
    assert running.receive(report) == ()


def test_events_of_an_earlier_run_are_ignored(running: Agent) -> None:
    """They may still be in the queue."""
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


def test_events_of_unassigned_fragments_are_ignored(agent: Agent) -> None:
    """A released lane may still send its last events."""
    agent.read_catalog()
    assert agent.stopped() == ()
    assert agent.receive(BatchFinished(LANE, RunNumber(1), fresh_marker(CARS), 0, 1)) == ()


def test_impossible_events_raise_and_change_nothing(running: Agent) -> None:
    """A second start, an unrequested start, a second end, a batch before the start."""
    found = fresh_marker(CARS, epoch=2)
    time = running.begin(found, LaneProfile((CARS,), Stateless()))
    before = running.state
    with pytest.raises(BrokenInvariantError, match="a lane started that was not asked to"):
        running.started(CARS)
    other, run = stable_lane(OTHER), RunNumber(1)
    with pytest.raises(BrokenInvariantError, match="was not asked to"):
        running.receive(LaneStarted(other, run, Epoch(2), found, time, running.steady_ms))
    with pytest.raises(BrokenInvariantError, match="run 2 of a lane whose last run is 1"):
        running.stopped(run=2)
    assert running.state == before
    running.stopped()
    with pytest.raises(BrokenInvariantError, match="backing off cannot have crashed"):
        running.stopped()
    running.tick(MINUTE)
    with pytest.raises(BrokenInvariantError, match="a batch finished in a lane that is starting"):
        running.receive(BatchFinished(LANE, RunNumber(2), found, 0, 1))


def test_a_status_is_due_on_change_and_every_two_seconds(
    agent: Agent,
) -> None:
    """But at most once a second."""

    def reports(event: Event) -> bool:
        return any(isinstance(effect, PublishStatus) for effect in agent.receive_all(event))

    assert reports(read(deployed()))
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
def test_no_lane_runs_twice_or_against_the_catalog(script: list[str]) -> None:
    """For any events: a start needs no running lane and a catalog that assigns it here."""
    agent, version, read, desired, busy, epoch = Agent(), 1, False, False, False, 0
    for step in script:
        before = agent.state.lanes.get(LANE)
        effects: tuple[object, ...] = ()
        if step in ("want", "change"):
            version += step == "change"
            read = desired = True
            effects = agent.read_catalog(deployed(version=version, digest=f"d{version}"))
        elif step == "unwant":
            read, desired = True, False
            effects = agent.read_catalog()
        elif step == "lost":
            read = False
            effects = agent.receive(CatalogLost())
        elif step == "start" and busy and agent.lane().running is None:
            epoch += 1
            effects = agent.started(CARS, epoch=epoch)
        elif step in ("crash", "final", "fence") and busy:
            busy = False
            effects = agent.receive(
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
            assert read
            assert desired
            assert before is None or not isinstance(before.phase, Fenced)
            busy = True


def test_a_topic_with_new_partitions_restarts_its_lane(running: Agent) -> None:
    """Only a new start can read the new partition."""
    assert running.ends({at(CARS, 0): 0, at(CARS, 1): 0}) == ()
    assert running.ends({at(CARS, 0): 0, at(CARS, 1): 0, at(CARS, 2): 5}) == (Stop(SPEED),)
    assert running.stopped(error=None) == (START,)
    assert running.lane().tries.restarts == 0
