"""The wall clock is set by hours, forward or back: it is displayed, but no decision uses it."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.back_off import back_off_ms
from pipeline.agent.effects import Effect, PublishStatus
from pipeline.agent.events import Tick
from pipeline.agent.rules.runs import FAILURES_MAX
from pipeline.agent.state import Lane, NodeState, Running, Starting
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.ids import Millis, NetworkVersion, SteadyMillis
from tests.unit.agent.support import (
    CARS,
    LEFT,
    LIFE,
    SPEED,
    START_MS,
    Agent,
    LaneEffect,
    Start,
    at,
    deployed,
)

HOUR_MS = 3_600_000
JUMPS = st.sampled_from([0, 0, 2 * HOUR_MS, -5 * HOUR_MS, 4_000, -4_000, -1])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ends", "batch", "silent", "crash", "start", "tick"]),
        st.integers(0, 12_000),
        JUMPS,
    ),
    max_size=40,
)


def _do(agent: Agent, what: str, number: int) -> tuple[LaneEffect | Effect, ...]:
    lane, one = agent.lane(), at(CARS, 0)
    read = 0 if lane.marker is None else lane.marker.end.get(one, 0)
    if what == "ends":
        return agent.ends({one: read, at(CARS, 1): 0})
    if what == "silent":
        return agent.ends({})
    if what == "batch" and lane.running is not None:
        return agent.finished({one: read + 1}, {one: number * 1_000, at(CARS, 1): number * 900})
    if what == "crash" and lane.running is not None:
        return agent.stopped("boom", epoch=lane.epoch)
    if what == "start" and isinstance(lane.phase, Starting):
        return agent.started(CARS, epoch=lane.epoch + 1)
    return tuple(
        replace(one, status=_without_time(one.status)) if isinstance(one, PublishStatus) else one
        for one in agent.receive_all(Tick())
    )


def _without_wall(state: NodeState) -> NodeState:
    """The effects without displayed times."""
    return replace(state, lanes={key: _shown(lane) for key, lane in state.lanes.items()})


def _shown(lane: Lane) -> Lane:
    if isinstance(lane.phase, Running):
        lane = lane.with_running(replace(lane.phase, read_at_ms=SteadyMillis(0)))
    if lane.reported is None:
        return lane
    reported = replace(lane.reported, status=_without_time(lane.reported.status))
    return replace(lane, reported=reported)


def _without_time(status: FragmentStatus) -> FragmentStatus:
    return replace(
        status,
        reported_at_ms=Millis(0),
        lag_ms=None,
        held_since_ms=None,
        held_silent_since_ms=None,
        stalled_since_ms=None,
        late_since_ms=None,
        settles_at_ms=None,
    )


@given(STEPS)
def test_no_decision_depends_on_the_wall_clock(steps: list[tuple[str, int, int]]) -> None:
    """Two agents get the same events; one clock is set repeatedly; the decisions are equal."""
    right, wrong = Agent(), Agent()
    for agent in (right, wrong):
        agent.read_catalog(deployed())
        agent.started(CARS)
    for number, (what, passed_ms, jump_ms) in enumerate(steps):
        wrong.ahead_ms += jump_ms
        done = []
        for agent in (right, wrong):
            agent.wait(passed_ms)
            done.append(_do(agent, what, number))
        assert done[0] == done[1]
        assert _without_wall(right.state) == _without_wall(wrong.state)


def test_backoff_is_independent_of_the_wall_clock() -> None:
    """The lane starts neither hours later nor at once."""
    for jump_ms in (2 * HOUR_MS, -5 * HOUR_MS):
        agent = Agent()
        agent.read_catalog(deployed())
        agent.started(CARS)
        agent.stopped("boom")
        agent.ahead_ms += jump_ms
        assert agent.tick(back_off_ms(SPEED, 1) - 1) == ()
        assert agent.tick(1) == (Start(SPEED, LIFE, NetworkVersion(1)),)


def test_a_clock_set_forward_does_not_reset_the_failure_count() -> None:
    """A lane that fails immediately each time still fails permanently."""
    agent = Agent()
    agent.read_catalog(deployed())
    for epoch in range(1, FAILURES_MAX + 1):
        agent.started(CARS, epoch=epoch)
        agent.ahead_ms += 2 * HOUR_MS
        agent.stopped("boom", epoch=epoch)
        agent.tick(60_000)
    assert "given up" in agent.report().last_error


def test_reported_times_are_relative_to_the_present_wall_clock() -> None:
    """Durations stay correct, also of what began before the clock was set."""
    agent = Agent()
    agent.read_catalog(deployed())
    agent.started(LEFT)
    agent.ends({at(LEFT, 0): 0, at(LEFT, 1): 0})
    agent.wait(1_000)
    agent.ends({at(LEFT, 0): 5, at(LEFT, 1): 0})
    agent.wait(2_000)
    agent.ahead_ms = -5 * HOUR_MS
    report = agent.report()
    assert report.reported_at_ms == START_MS + 3_000 - 5 * HOUR_MS
    assert report.lag_ms == 3_000
