"""Findings about what may fail."""

from dataclasses import replace

import pytest

from brokers.records import TopicDescription
from pipeline.doctor.facts import (
    Finding,
    Observed,
    ObservedNetwork,
    ObservedSecondaries,
    ObservedTopic,
    Verdict,
)
from pipeline.doctor.failures import may_fail, shared_topics
from pipeline.ids import FragmentName, NetworkId, NetworkName, ParticipantId, TopicName
from pipeline.planner.failures import Replicas
from pipeline.planner.plan import NewTopic

NETWORK = NetworkId(ParticipantId("local"), NetworkName("n"))
F = FragmentName("f")
SAFE = {"min.insync.replicas": "2"}
LEVEL = ObservedSecondaries(has_state=True, wanted=2, there=2, level=2)


def topic(name: str, replicas: int, *, external: bool = False) -> ObservedTopic:
    """A topic that is to have three replicas, of which two have to be in sync."""
    planned = NewTopic(TopicName(name), 1, 3, (), external)
    actual = TopicDescription(planned.name, "id", 1, replicas)
    return ObservedTopic(planned, actual, SAFE)


def network(*topics: ObservedTopic, of: ObservedSecondaries = LEVEL) -> ObservedNetwork:
    """A network whose fragment should run."""
    return ObservedNetwork(NETWORK, True, True, topics, secondaries={F: of})


def messages(found: list[Finding], verdict: Verdict) -> list[str]:
    """Those of a severity."""
    return [one.message for one in found if one.verdict is verdict]


@pytest.mark.parametrize(
    ("of", "words"),
    [
        (LEVEL, "f 2 (2 of 2 level)"),
        (replace(LEVEL, level=1), "f 1 (1 of 2 level)"),
        (ObservedSecondaries(has_state=True), "f 0"),
        (ObservedSecondaries(has_state=False), "f all but one (no state)"),
    ],
)
def test_as_many_nodes_may_fail_as_are_level(of: ObservedSecondaries, words: str) -> None:
    """One that builds its state would have to go on building it."""
    (message,) = messages(list(may_fail(network(of=of))), Verdict.GOOD)
    assert message.endswith(f"built from the log: {words}")


@pytest.mark.parametrize(
    ("there", "words", "hint"),
    [
        (
            0,
            "to have 2 secondaries, and has none: too few nodes are up",
            "start 2 more nodes that",
        ),
        (1, "to have 2 secondaries, and has only 1: too few nodes are up", "1 more node"),
    ],
)
def test_missing_secondaries_are_doubtful(there: int, words: str, hint: str) -> None:
    """With how many nodes to start."""
    found = list(may_fail(network(of=replace(LEVEL, there=there, level=0))))
    (missing,) = (one for one in found if one.verdict is Verdict.DOUBTFUL)
    assert missing.message == f"f is {words}"
    assert hint in missing.hint
    assert missing.place == "fragment n.f"


def test_brokers_by_the_topics_as_they_are() -> None:
    """An input is only read here; a topic that is not there counts for nothing."""
    found = network(
        topic("in", 3, external=True),
        topic("out", 3),
        replace(topic("redrive", 0), actual=None),
    )
    _, brokers = messages(list(may_fail(found)), Verdict.GOOD)
    assert brokers == (
        "brokers that may fail at once: 1 without loss, 1 without a pause; no more by in, out"
    )


def test_a_topic_of_its_own_with_fewer_replicas_is_doubtful() -> None:
    """An input is a matter of others."""
    found = list(may_fail(network(topic("in", 1, external=True), topic("out", 2))))
    (fewer,) = messages(found, Verdict.DOUBTFUL)
    assert fewer == "topic out has 2 replicas, the network says 3"


def test_a_network_of_which_nothing_should_run_has_no_findings() -> None:
    """Neither for nodes nor for brokers."""
    seen = ObservedNetwork(NETWORK, True, True, (topic("out", 1),))
    assert list(may_fail(seen)) == []
    shared = (Replicas(TopicName("events"), 1, 1, written=True),)
    assert list(shared_topics(Observed((), (seen,), shared=shared))) == []


@pytest.mark.parametrize(
    ("replicas", "in_sync", "verdict", "words"),
    [
        (3, 2, Verdict.GOOD, "1 without loss, 1 without a pause"),
        (1, 1, Verdict.DOUBTFUL, "cannot be written with 1 broker away"),
        (2, 2, Verdict.DOUBTFUL, "can with 1 broker"),
    ],
)
def test_shared_topics_are_as_safe_as_those_of_networks(
    replicas: int, in_sync: int, verdict: Verdict, words: str
) -> None:
    """Else results pause, or nodes are not noticed to fail, earlier than the network says."""
    shared = (Replicas(TopicName("events"), replicas, in_sync, written=True),)
    (found,) = shared_topics(Observed((), (network(topic("out", 3)),), shared=shared))
    assert found.verdict is verdict
    assert words in found.message
