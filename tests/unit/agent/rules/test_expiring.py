"""When an agent looks for records that retention removes before a lane has used them."""

from dataclasses import replace

import pytest

from pipeline.agent.effects import Effect, FindExpiring
from pipeline.agent.events import EndsRead, Event, ExpiringFound, Tick
from pipeline.agent.rules.expiring import BEHIND_LEAST_MS, EVERY_MS
from pipeline.boundaries.ends import Answer, ends_of
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import Offset
from pipeline.lanes.events import BatchFinished
from pipeline.lanes.expiring import Cause, ExpiringRecords, LogNeeds, TopicNeeds, Use
from tests.unit.agent.support import CARS, LANE, Agent, at, deployed, read
from tests.unit.lanes.marked import marked

TOPIC = CARS.topic
EXPIRING = ExpiringRecords(TOPIC, (0,), Use.UNREAD, Cause.REMOVED)
P0, P1 = at(CARS, 0), at(CARS, 1)


def in_catalog(*, running: bool = True) -> Deployed:
    """The fragment, with the id of its topic."""
    found = deployed(running=running)
    return replace(found, record=replace(found.record, topic_ids=((TOPIC, f"id of {TOPIC}"),)))


def requests(agent: Agent, event: Event) -> list[LogNeeds]:
    """The searches that follow from an event."""
    return _searches(agent.receive_all(event))


def _searches(effects: tuple[Effect, ...]) -> list[LogNeeds]:
    return [effect.needs for effect in effects if isinstance(effect, FindExpiring)]


@pytest.fixture
def agent() -> Agent:
    """An agent whose lane has read three records of each of two partitions."""
    agent = Agent()
    agent.read_catalog(in_catalog())
    agent.started(CARS)
    last = agent.lane().marker
    assert last is not None
    end = {P0: Offset(3), P1: Offset(3)}
    marker = replace(last, end=end, needed={P0: Offset(1), P1: Offset(3)}, sources=marked(end))
    agent.receive(BatchFinished(LANE, agent.lane().run, marker, 1, 40))
    return agent


def later(agent: Agent, ends: int = 3, milliseconds: int = EVERY_MS) -> list[LogNeeds]:
    """The searches that follow when the ends are read after some time."""
    agent.wait(milliseconds)
    return requests(agent, agent.answer({P0: ends, P1: 3}))


def test_a_lane_that_is_not_behind_asks_nothing(agent: Agent) -> None:
    """Although a rebuild of its state would need older records."""
    for _ in range(3):
        assert later(agent) == []
    assert agent.report().expiring == ()


def test_a_lane_that_is_behind_asks_once_a_minute(agent: Agent) -> None:
    """For its positions; a lane that was examined before is examined when it is due again."""
    assert later(agent) == []
    assert later(agent, 4, BEHIND_LEAST_MS - 1) == []
    (needs,) = later(agent, 4)
    assert needs.topics == {
        TOPIC: TopicNeeds(needs.topics[TOPIC].topic_id, {0: Offset(3), 1: Offset(3)})
    }
    assert needs.running
    assert later(agent, 4, EVERY_MS - 1) == []
    assert len(later(agent, 4, 1)) == 1
    agent.receive(ExpiringFound(LANE, (EXPIRING,)))
    assert agent.report().expiring == (EXPIRING,)
    agent.finished({P0: 4})
    assert later(agent, 4) == []
    assert agent.report().expiring == ()


def test_before_the_ends_are_known_the_last_answer_counts(agent: Agent) -> None:
    """The lane has just started: whether it is behind is decided by the next answer."""
    agent.receive(ExpiringFound(LANE, (EXPIRING,)))
    assert requests(agent, Tick()) == []
    assert agent.report().expiring == (EXPIRING,)
    assert later(agent, 3, 1) == []
    assert agent.report().expiring == ()


def test_a_lane_at_rest_asks_for_its_state_as_well(agent: Agent) -> None:
    """Paused, and with every failure; the needed records are below its position."""
    later(agent)
    assert requests(agent, read(in_catalog(running=False))) == []
    agent.stopped(None)
    agent.wait(EVERY_MS)
    (needs,) = requests(agent, Tick())
    assert not needs.running
    assert needs.topics[TOPIC].rebuild == {0: 1}
    assert needs.since_ms == agent.now.wall_ms - EVERY_MS
    agent.receive(ExpiringFound(LANE, (EXPIRING,)))
    assert agent.report().expiring == (EXPIRING,)


def test_a_partition_that_does_not_answer_is_examined_if_it_has_unread_records(
    agent: Agent,
) -> None:
    """The others are read on, so the lane is not behind."""
    later(agent)
    agent.receive(agent.answer({P0: 3, P1: 5}))
    since = agent.now.wall_ms

    def missing() -> EndsRead:
        answer = Answer({TOPIC: {0: Offset(3)}}, {}, missing=frozenset({(TOPIC, 1)}))
        return EndsRead(ends_of(agent.state.shared.ends, agent.steady_ms, answer))

    agent.receive(missing())
    agent.wait(EVERY_MS)
    (needs,) = requests(agent, missing())
    assert needs.topics[TOPIC].unread_since == {1: since}


def test_a_fragment_that_is_not_assigned_asks_nothing(agent: Agent) -> None:
    """Its node examines it; and a fragment that never ran has no positions."""
    later(agent)
    agent.read_catalog()
    agent.wait(EVERY_MS)
    assert requests(agent, Tick()) == []
    fresh = Agent()
    fresh.read_catalog(in_catalog())
    assert requests(fresh, Tick()) == []
    assert fresh.report().expiring is None
