"""What a node's agent keeps of boundaries, and forgets."""

from dataclasses import replace

import pytest

from pipeline.boundaries.lane_time import writer_of
from pipeline.brain.events import SendAdvance
from pipeline.ids import Incarnation, Millis, TopicId
from tests.unit.brain.support import LEFT, RIGHT, SPEED, Agent, wish


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
    assert agent.promise(again, 499, 0, 0) == (
        SendAdvance(SPEED, Incarnation("life-1"), Millis(499)),
    )
    assert set(agent.state.writers) == {writer_of(again)}


def test_what_is_known_of_boundaries_is_kept_while_it_is_watched(agent: Agent) -> None:
    """Also when another input comes to it, or their topic is read from its beginning again."""
    agent.want(wish())
    agent.watch_boundaries(LEFT)
    agent.promise(LEFT, 499, 0, 0)
    agent.watch_boundaries(LEFT, RIGHT)
    assert agent.started(LEFT) == (SendAdvance(SPEED, Incarnation("life-1"), Millis(499)),)


def test_a_node_that_lives_long_keeps_nothing_of_what_was_destroyed(agent: Agent) -> None:
    """One network after the other, all of them with a topic of their own."""
    for life in range(100):
        one = replace(LEFT, topic_id=TopicId(f"left-{life}"))
        agent.watch_boundaries(one)
        agent.promise(one, life, 0, 0)
    assert len(agent.state.writers) == 1
