"""What a node's agent keeps of boundaries, and forgets."""

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
    fresh_marker,
    read,
    wish,
)


@pytest.fixture
def agent() -> Agent:
    """An agent that knows nothing yet."""
    return Agent()


def test_boundaries_of_a_deleted_topic_are_forgotten(agent: Agent) -> None:
    """The topic that was created after it has the same name and the same writer, and another id."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 1_009, 0, 0)
    again = replace(LEFT, topic_id=TopicId("left-2"))
    agent.watch_boundaries(again)
    agent.promise(LEFT, 1_010, 0, 0)
    assert agent.started(again) == ()
    assert agent.promise(again, 499, 0, 0) == (Advance(SPEED, Incarnation("life-1"), Millis(499)),)
    assert set(agent.state.shared.writers) == {writer_of(again)}


def test_what_is_known_of_boundaries_is_kept_while_it_is_watched(agent: Agent) -> None:
    """Also when another input comes to it, or their topic is read from its beginning again."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 499, 0, 0)
    agent.watch_boundaries(LEFT, RIGHT)
    assert agent.started(LEFT) == (Advance(SPEED, Incarnation("life-1"), Millis(499)),)


def test_a_node_that_lives_long_keeps_nothing_of_what_was_destroyed(agent: Agent) -> None:
    """One network after the other, all of them with a topic of their own."""
    for life in range(100):
        one = replace(LEFT, topic_id=TopicId(f"left-{life}"))
        agent.watch_boundaries(one)
        agent.promise(one, life, 0, 0)
    assert len(agent.state.shared.writers) == 1


def _said(effects: tuple[Effect, ...]) -> list[bool]:
    return [effect.idle for effect in effects if isinstance(effect, SendActivity)]


def _started() -> LaneStarted:
    begun, profile = fresh_marker(CARS), LaneProfile((CARS,), Stateless())
    return LaneStarted(LANE, RunNumber(1), Epoch(1), begun.incarnation, begun, profile)


def test_a_lane_whose_inputs_are_all_idle_says_so_once_a_second(agent: Agent) -> None:
    """And once when that ends."""
    agent.want(wish())
    agent.started(CARS)
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    said: list[tuple[int, bool]] = []
    for step in range(26):
        agent.wait(500)
        effects = agent.hear_all(agent.answer(ends))
        said += [(500 * (step + 1), idle) for idle in _said(effects)]
    assert said == [(10_500, True), (11_500, True), (12_500, True)]
    assert _said(agent.hear_all(agent.answer({**ends, at(CARS, 0): 1}))) == [False]
    assert _said(agent.hear_all(agent.answer({**ends, at(CARS, 0): 1}))) == []


def test_a_lane_that_is_stopped_takes_back_that_it_is_idle(agent: Agent) -> None:
    """What comes while nobody runs it is still to be read; the next one says what it is."""
    agent.want(wish())
    assert _said(agent.hear_all(_started())) == [False]
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    said: list[bool] = []
    for _ in range(24):
        agent.wait(500)
        said += _said(agent.hear_all(agent.answer(ends)))
    assert said
    assert all(said)
    assert _said(agent.hear_all(read(wish(running=False)))) == [False]
    agent.wait(2_000)
    assert _said(agent.hear_all(agent.answer(ends))) == []


def test_a_lane_that_is_taken_away_says_nothing_any_more(agent: Agent) -> None:
    """Its topics may be gone, and whoever has it now says what it is."""
    agent.want(wish())
    assert _said(agent.hear_all(_started())) == [False]
    ends = {at(CARS, 0): 0, at(CARS, 1): 0}
    for _ in range(24):
        agent.wait(500)
        agent.hear_all(agent.answer(ends))
    assert agent.running().idle_sent_at_ms is not None
    assert _said(agent.hear_all(read())) == []


def test_a_lane_that_keeps_what_can_still_come_out_is_not_idle(agent: Agent) -> None:
    """Its readers wait for an open window, however quiet it is."""
    agent.want(wish())
    agent.started(CARS, profile=LaneProfile((CARS,), Windowed(TumblingWindow(60_000, 0))))
    done, ends = {at(CARS, 0): 1}, {at(CARS, 0): 1, at(CARS, 1): 0}
    agent.finished(done, {at(CARS, 0): 90_000}, boundary_ms=119_999)
    said: list[bool] = []
    for _ in range(30):
        agent.wait(500)
        said += _said(agent.hear_all(agent.answer(ends)))
    assert said == []
    agent.finished(done, boundary_ms=179_999)
    assert agent.running().idle_sent_at_ms == agent.steady_ms


def test_what_a_writer_says_of_itself_reaches_its_readers(agent: Agent) -> None:
    """Those that run, and those that start later; nobody who does not read its topic."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.started(LEFT, RIGHT)
    for writer in (writer_of(LEFT), writer_of(RIGHT)):
        agent.hear(ActivityRead(writer, Epoch(1), idle=True))
    time = agent.running().time
    assert time.writers[LEFT.stream].idle_at_ms == agent.steady_ms
    assert time.writers[RIGHT.stream].idle_at_ms is None
    assert agent.state.shared.writers[writer_of(LEFT)].idle_at_ms == agent.steady_ms


def test_a_lane_is_told_what_its_writers_have_promised(agent: Agent) -> None:
    """Once for each promise that counts by now."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.started(LEFT)

    def noted(event: Event) -> list[NotePromises]:
        return [one for one in agent.hear_all(event) if isinstance(one, NotePromises)]

    boundary = BoundaryRead(writer_of(LEFT), Epoch(1), Millis(499), {0: Offset(0), 1: Offset(0)})
    assert noted(boundary) == [NotePromises(LANE, {LEFT.stream: Millis(499)})]
    assert noted(boundary) == []
    assert noted(replace(boundary, boundary_ms=Millis(599), positions={0: Offset(5)})) == []
