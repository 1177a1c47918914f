"""Decisions of a node's agent about topics that a fragment gets."""

from dataclasses import replace

from pipeline.brain.events import StartLane, StopLane
from pipeline.ids import NetworkVersion, TopicName
from tests.unit.brain.support import CARS, LIFE, SPEED, Agent, wish


def test_a_topic_that_the_fragment_gets_later_restarts_the_lane_once() -> None:
    """Such as that of records that are sent again: the version is the same, and so is the plan."""
    running = Agent()
    running.want(wish())
    running.started(CARS)
    known = replace(wish(), topic_ids=((TopicName("net.speed.redrive"), "id"),))
    assert running.want(known) == (StopLane(SPEED),)
    assert running.stopped(None) == (StartLane(SPEED, LIFE, NetworkVersion(1)),)
    running.started(CARS, epoch=2)
    assert running.want(known) == ()
    assert running.report().restarts == 0
