"""Findings about what may fail: how many nodes, and how many brokers. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from pipeline.counting import counted
from pipeline.doctor.facts import (
    Finding,
    Observed,
    ObservedNetwork,
    ObservedSecondaries,
    ObservedTopic,
    Verdict,
)
from pipeline.ids import FragmentName, TopicName
from pipeline.planner.failures import (
    MIN_INSYNC,
    MIN_INSYNC_DEFAULT,
    BrokerFailures,
    Replicas,
    broker_failures,
)

_NAMED: Final = 3
"""Number of topics that are named."""
_MORE_REPLICAS: Final = (
    "`kafka-reassign-partitions.sh` gives an existing topic more replicas; the topics of event log "
    "and heartbeats are made with the brokers' default.replication.factor."
)


def may_fail(network: ObservedNetwork) -> Iterator[Finding]:
    """How many nodes and brokers may fail at once, of a network of which a fragment should run."""
    name = f"network {network.name}"
    if not network.secondaries:
        return
    for fragment, one in network.secondaries.items():
        yield from _missing(fragment, one, network, name)
    every = ", ".join(f"{key} {_nodes(one)}" for key, one in network.secondaries.items())
    text = f"nodes that may fail at once without a state that is built from the log: {every}"
    yield Finding(name, Verdict.GOOD, text)
    for topic in network.topics:
        yield from _fewer(topic, name)
    if (found := failures_of(network)) is not None:
        text = f"brokers that may fail at once: {found.words}; {_limits(found)}"
        yield Finding(name, Verdict.GOOD, text)


def shared_topics(observed: Observed) -> Iterator[Finding]:
    """Topics that are less safe than those of the networks which need them."""
    wanted = (one for one in observed.networks if one.secondaries)
    found = [one for one in map(failures_of, wanted) if one is not None]
    if not found or not observed.shared:
        return
    pause = max(one.without_pause for one in found)
    weak = [one for one in observed.shared if one.without_pause < pause]
    for one in weak:
        place = f"topic {one.topic}"
        yield Finding(
            "brokers",
            Verdict.DOUBTFUL,
            f"{place} cannot be written with {counted(one.without_pause + 1, 'broker')} away; the "
            f"topics of a network can with {counted(pause, 'broker')}",
            place,
            _MORE_REPLICAS,
        )
    if not weak:
        every = broker_failures(observed.shared)
        words = "" if every is None else every.words
        text = f"event log, heartbeats and Kafka's transactions: brokers that may fail: {words}"
        yield Finding("brokers", Verdict.GOOD, text)


def failures_of(network: ObservedNetwork) -> BrokerFailures | None:
    """How many brokers may fail, by the topics of a network as they are; None: none is known."""
    return broker_failures(
        replicas_of(one.planned.name, one.actual.replication, one.config, written=_is_own(one))
        for one in network.topics
        if one.actual is not None
    )


def replicas_of(
    topic: TopicName, number: int, config: Mapping[str, str], *, written: bool
) -> Replicas:
    """The replication of a topic, by its settings in force."""
    return Replicas(topic, number, int(config.get(MIN_INSYNC, MIN_INSYNC_DEFAULT)), written)


def _is_own(topic: ObservedTopic) -> bool:
    """Whether a fragment of the network writes it."""
    return not topic.planned.external


def _missing(
    fragment: FragmentName, one: ObservedSecondaries, network: ObservedNetwork, name: str
) -> Iterator[Finding]:
    """Fewer secondaries than the network declares."""
    if one.there >= one.wanted:
        return
    there = f"only {one.there}" if one.there else "none"
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"{fragment} is to have {_secondaries(one.wanted)}, and has {there}: too few nodes are up",
        f"fragment {network.name}.{fragment}",
        f"start {counted(one.wanted - one.there, 'more node')} that its placement allows "
        "(`medusa node start`).",
    )


def _secondaries(number: int) -> str:
    return "1 secondary" if number == 1 else f"{number} secondaries"


def _nodes(one: ObservedSecondaries) -> str:
    if not one.has_state:
        return "all but one (no state)"
    return f"{one.level} ({one.level} of {one.wanted} level)" if one.wanted else "0"


def _fewer(topic: ObservedTopic, name: str) -> Iterator[Finding]:
    """A topic of the network's own with fewer replicas than it declares."""
    wanted, actual = topic.planned.replication, topic.actual
    if actual is None or topic.planned.external or actual.replication >= wanted:
        return
    place = f"topic {topic.planned.name}"
    yield Finding(
        name,
        Verdict.DOUBTFUL,
        f"{place} has {_replicas(actual.replication)}, the network says {wanted}",
        place,
        _MORE_REPLICAS,
    )


def _replicas(number: int) -> str:
    return f"{number} {'replica' if number == 1 else 'replicas'}"


def _limits(found: BrokerFailures) -> str:
    more = len(found.weakest) - _NAMED
    named = ", ".join(found.weakest[:_NAMED])
    return f"no more by {named}" + (f" and {counted(more, 'more topic')}" if more > 0 else "")
