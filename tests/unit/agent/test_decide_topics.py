"""Agent decisions on topics that are added to a fragment after its deploy."""

from dataclasses import replace

from pipeline.ids import NetworkVersion, TopicName
from tests.unit.agent.support import CARS, LIFE, SPEED, Agent, Start, Stop, deployed


def test_a_topic_added_later_restarts_the_lane_once() -> None:
    """For example the redrive topic: version and plan are unchanged."""
    running = Agent()
    running.read_catalog(deployed())
    running.started(CARS)
    record = replace(deployed().record, topic_ids=((TopicName("net.speed.redrive"), "id"),))
    with_redrive = replace(deployed(), record=record)
    assert running.read_catalog(with_redrive) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(1)),)
    running.started(CARS, epoch=2)
    assert running.read_catalog(with_redrive) == ()
    assert running.report().restarts == 0
