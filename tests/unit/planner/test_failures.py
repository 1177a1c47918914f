"""How many nodes and brokers may fail."""

import pytest

from pipeline.ids import TopicName
from pipeline.names import boundaries_topic
from pipeline.planner.failures import (
    BrokerFailures,
    Replicas,
    broker_failures,
    node_failures,
    planned_failures,
    topics_of,
)
from pipeline.planner.plan import DerivedStream
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, external, filtered, network, tolls
from tests.unit.planner.passes.test_share_box_settings import planned

ONE, TWO = TopicName("one"), TopicName("two")


@pytest.mark.parametrize(
    ("number", "in_sync", "written", "loss", "pause"),
    [
        (1, 1, True, 0, 0),
        (1, 2, True, 0, 0),
        (3, 1, True, 0, 2),
        (3, 2, True, 1, 1),
        (3, 3, True, 2, 0),
        (3, 2, False, 1, 2),
        (5, 3, True, 2, 2),
        (0, 1, True, 0, 0),
    ],
)
def test_what_one_topic_allows(
    number: int, in_sync: int, *, written: bool, loss: int, pause: int
) -> None:
    """A record is safe on the replicas that had to be in sync; a reader needs one."""
    topic = Replicas(ONE, number, in_sync, written)
    assert (topic.without_loss, topic.without_pause) == (loss, pause)


def test_the_weakest_topics_decide() -> None:
    """One may allow fewer losses, another one fewer pauses."""
    assert broker_failures(()) is None
    one, two = Replicas(ONE, 3, 1, written=True), Replicas(TWO, 3, 3, written=True)
    three = Replicas(TopicName("three"), 3, 2, written=True)
    assert broker_failures((one, two, three)) == BrokerFailures(0, 0, (ONE, TWO))
    assert broker_failures((three, three)) == BrokerFailures(1, 1, (three.topic,))
    found = broker_failures((three,))
    assert found is not None
    assert found.words == "1 without loss, 1 without a pause"


WINDOW = "\n  counts: {aggregate: s, by: [road], compute: {n: count(*)}}\n"


@pytest.mark.parametrize(
    ("head", "number"),
    [
        ("", 0),
        ("reliability: active_standby", 1),
        ("reliability: {mode: active_standby, secondaries: 3}", 3),
    ],
)
def test_as_many_nodes_may_fail_as_follow_a_state(head: str, number: int) -> None:
    """Without a secondary its state is built from the log."""
    (fragment,) = planned(WINDOW, head).fragments
    assert node_failures(fragment) == number


def test_without_a_state_all_nodes_but_one_may_fail() -> None:
    """There is nothing to build."""
    sightings = external("sightings")
    found = plan(network((sightings,), (filtered("fast", sightings, "`at` > 0"),)), OWNER)
    assert node_failures(found.fragments[0]) is None


@pytest.mark.parametrize(("replication", "loss", "pause"), [(1, 0, 0), (2, 0, 1), (3, 1, 1)])
def test_brokers_by_the_topics_as_they_are_planned(replication: int, loss: int, pause: int) -> None:
    """Of three replicas two have to be in sync."""
    found = planned(WINDOW, f"replication: {replication}")
    failures = planned_failures(found.fragments[0], found)
    assert failures is not None
    assert (failures.without_loss, failures.without_pause) == (loss, pause)


def test_a_fragment_needs_its_inputs_and_writes_its_own_topics() -> None:
    """Of a derived input also the boundaries; a redrive topic only when records are sent again."""
    found = plan(tolls(), OWNER)
    for fragment in found.fragments:
        topics = topics_of(fragment)
        for stream in fragment.inputs:
            assert topics[stream.topic] is False
            derived = isinstance(stream, DerivedStream)
            assert topics.get(boundaries_topic(stream.topic)) is (False if derived else None)
        names, output = fragment.names, fragment.output.topic
        own = (output, boundaries_topic(output), names.dead_letters, names.markers)
        assert {topic for topic, written in topics.items() if written} == set(own)
    assert any(isinstance(one, DerivedStream) for f in found.fragments for one in f.inputs)
