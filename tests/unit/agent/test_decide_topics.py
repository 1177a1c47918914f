"""Decisions of a node's agent about topics that a fragment gets."""

from dataclasses import replace

from pipeline.ids import NetworkVersion, TopicName
from tests.unit.agent.support import CARS, LIFE, SPEED, Agent, Start, Stop, wish


def test_a_topic_that_the_fragment_gets_later_restarts_the_lane_once() -> None:
    """Such as that of records that are sent again: the version is the same, and so is the plan."""
    running = Agent()
    running.want(wish())
    running.started(CARS)
    record = replace(wish().record, topic_ids=((TopicName("net.speed.redrive"), "id"),))
    known = replace(wish(), record=record)
    assert running.want(known) == (Stop(SPEED),)
    assert running.stopped(None) == (Start(SPEED, LIFE, NetworkVersion(1)),)
    running.started(CARS, epoch=2)
    assert running.want(known) == ()
    assert running.report().restarts == 0
