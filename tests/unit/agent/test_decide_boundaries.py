"""Retention of boundaries in a node's agent."""

from dataclasses import replace

import pytest

from pipeline.agent.effects import Effect, NotePromises, SendActivity
from pipeline.agent.events import ActivityRead, BoundaryRead, Event
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import LaneProfile
from pipeline.ids import Epoch, Incarnation, Millis, Offset, RunNumber, TopicId
from pipeline.lanes.events import LaneStarted
from pipeline.network.boxes.shape import Stateless, Windowed
from pipeline.network.boxes.windows import TumblingWindow
from tests.unit.agent.support import (
    CARS,
    LANE,
    LEFT,
    RIGHT,
    SPEED,
    Advance,
    Agent,
    at,
    deployed,
    fresh_marker,
    read,
)


@pytest.fixture
def agent() -> Agent:
    """An agent in its initial state."""
    return Agent()


def test_boundaries_of_a_deleted_topic_are_removed(agent: Agent) -> None:
    """The recreated topic has the same name and writer, and another id."""
    agent.read_catalog(deployed())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 1_009, 0, 0)
    again = replace(LEFT, topic_id=TopicId("left-2"))
    agent.watch_boundaries(again)
    agent.promise(LEFT, 1_010, 0, 0)
    assert agent.started(again) == ()
    assert agent.promise(again, 499, 0, 0) == (Advance(SPEED, Incarnation("life-1"), Millis(499)),)
    assert set(agent.state.shared.writers) == {writer_of(again)}


def test_boundaries_are_kept_while_their_topic_is_watched(agent: Agent) -> None:
    """Also when another input is added, or their topic is read from its beginning again."""
    agent.read_catalog(deployed())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 499, 0, 0)
    agent.watch_boundaries(LEFT, RIGHT)
    assert agent.started(LEFT) == (Advance(SPEED, Incarnation("life-1"), Millis(499)),)


def test_state_of_destroyed_networks_is_removed(agent: Agent) -> None:
    """One network after another, each with its own topic: the memory of the agent stays bounded."""
    for life in range(100):
        one = replace(LEFT, topic_id=TopicId(f"left-{life}"))
        agent.watch_boundaries(one)
        agent.promise(one, life, 0, 0)
    assert len(agent.state.shared.writers) == 1


def _published(effects: tuple[Effect, ...]) -> list[bool]:
    return [effect.idle for effect in effects if isinstance(effect, SendActivity)]


def _started() -> LaneStarted:
    begun, profile = fresh_marker(CARS), LaneProfile((CARS,), Stateless())
    return LaneStarted(LANE, RunNumber(1), Epoch(1), begun.incarnation, begun, profile)


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
    assert _published(agent.receive_all(_started())) == [False]
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
    assert _published(agent.receive_all(_started())) == [False]
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


def test_the_activity_of_a_writer_reaches_its_readers(agent: Agent) -> None:
    """Running lanes and lanes that start later, but only those that read its topic."""
    agent.read_catalog(deployed())
    agent.watch_boundaries(LEFT)
    agent.started(LEFT, RIGHT)
    for writer in (writer_of(LEFT), writer_of(RIGHT)):
        agent.receive(ActivityRead(writer, Epoch(1), idle=True))
    time = agent.running().time
    assert time.writers[LEFT.stream].idle_at_ms == agent.steady_ms
    assert time.writers[RIGHT.stream].idle_at_ms is None
    assert agent.state.shared.writers[writer_of(LEFT)].idle_at_ms == agent.steady_ms


def test_a_lane_receives_the_promises_of_its_writers(agent: Agent) -> None:
    """Once for each promise that is in force."""
    agent.read_catalog(deployed())
    agent.watch_boundaries(LEFT)
    agent.started(LEFT)

    def noted(event: Event) -> list[NotePromises]:
        return [one for one in agent.receive_all(event) if isinstance(one, NotePromises)]

    boundary = BoundaryRead(writer_of(LEFT), Epoch(1), Millis(499), {0: Offset(0), 1: Offset(0)})
    assert noted(boundary) == [NotePromises(LANE, {LEFT.stream: Millis(499)})]
    assert noted(boundary) == []
    assert noted(replace(boundary, boundary_ms=Millis(599), positions={0: Offset(5)})) == []
