"""Activity reports of a lane to the readers of its output."""

import pytest

from pipeline.agent.effects import Effect, SendActivity
from pipeline.boundaries.profile import LaneProfile
from pipeline.ids import Epoch, RunNumber
from pipeline.lanes.events import LaneStarted
from pipeline.network.boxes.shape import Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from tests.unit.agent.support import CARS, LANE, Agent, at, deployed, fresh_marker, read


@pytest.fixture
def agent() -> Agent:
    """An agent in its initial state."""
    return Agent()


def _published(effects: tuple[Effect, ...]) -> list[bool]:
    return [effect.idle for effect in effects if isinstance(effect, SendActivity)]


def _started(agent: Agent) -> LaneStarted:
    begun = fresh_marker(CARS)
    time = agent.begin(begun, LaneProfile((CARS,), Stateless()))
    return LaneStarted(LANE, RunNumber(1), Epoch(1), begun, time, agent.steady_ms)


def test_an_idle_lane_publishes_that_it_is_idle_once_a_second(agent: Agent) -> None:
    """And publishes the end of idleness once."""
    agent.read_catalog(deployed())
    agent.started(CARS)
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    published: list[tuple[int, bool]] = []
    for step in range(26):
        agent.wait(500)
        effects = agent.receive_all(agent.answer(ends))
        published += [(500 * (step + 1), idle) for idle in _published(effects)]
    assert published == [(10_500, True), (11_500, True), (12_500, True)]
    assert _published(agent.receive_all(agent.answer({**ends, at(CARS, 0): 1}))) == [False]
    assert _published(agent.receive_all(agent.answer({**ends, at(CARS, 0): 1}))) == []


def test_a_stopped_lane_publishes_that_it_is_active(agent: Agent) -> None:
    """Records that arrive while it is stopped are unread; the next run publishes its own state."""
    agent.read_catalog(deployed())
    assert _published(agent.receive_all(_started(agent))) == [False]
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    published: list[bool] = []
    for _ in range(24):
        agent.wait(500)
        published += _published(agent.receive_all(agent.answer(ends)))
    assert published
    assert all(published)
    assert _published(agent.receive_all(read(deployed(running=False)))) == [False]
    agent.wait(2_000)
    assert _published(agent.receive_all(agent.answer(ends))) == []


def test_a_lane_moved_to_another_node_publishes_nothing(agent: Agent) -> None:
    """Its topics may be deleted, and the new owner publishes its own state."""
    agent.read_catalog(deployed())
    assert _published(agent.receive_all(_started(agent))) == [False]
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    for _ in range(24):
        agent.wait(500)
        agent.receive_all(agent.answer(ends))
    assert agent.running().idle_sent_at_ms is not None
    assert _published(agent.receive_all(read())) == []


def test_a_lane_whose_state_can_still_emit_is_not_idle(agent: Agent) -> None:
    """Its readers wait for an open window, even without new records."""
    agent.read_catalog(deployed())
    agent.started(CARS, profile=LaneProfile((CARS,), Windowed(TumblingWindow(60_000, 0))))
    done, ends = {at(CARS, 0): 1}, {at(CARS, 0): 1, at(CARS, 1): 0}
    agent.finished(done, {at(CARS, 0): 90_000}, boundary_ms=119_999)
    published: list[bool] = []
    for _ in range(30):
        agent.wait(500)
        published += _published(agent.receive_all(agent.answer(ends)))
    assert published == []
    agent.finished(done, boundary_ms=179_999)
    assert agent.running().idle_sent_at_ms == agent.steady_ms
