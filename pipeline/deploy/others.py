"""Topics of other deployed networks: only one network may write a topic. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline import durations
from pipeline.errors import Problem
from pipeline.ids import NetworkId, StreamName, TopicName
from pipeline.names import boundaries_topic
from pipeline.network.boxes.shape import span_ms
from pipeline.network.model import ExternalStream, Silence
from pipeline.planner.plan import Fragment, Plan


@dataclass(frozen=True, slots=True)
class Taken:
    """Use of a topic by another network that writes it.

    Args:
        what: the topic's role in that network, in a few words.
        readable: whether it contains records of a stream or dead letters, which others may read.
        silent_ms: for an output whose last results come only after a silence of that network's own
            inputs: how long after the last record; 0 for others.
        by_need: whether its records are removed once no fragment of the participant needs them.
    """

    network: NetworkId
    what: str
    readable: bool
    silent_ms: int = 0
    by_need: bool = False

    def __str__(self) -> str:
        return f"{self.what} of network {self.network} of participant {self.network.participant}"


@dataclass(frozen=True, slots=True)
class Others:
    """What other deployed networks do with topics.

    Args:
        taken: the topics that they write.
        read: the topics that networks of other participants read from outside, each with one.
    """

    taken: Mapping[TopicName, Taken] = field(default_factory=dict)
    read: Mapping[TopicName, NetworkId] = field(default_factory=dict)


def written_topics(plan: Plan) -> Iterator[tuple[TopicName, Taken]]:
    """Every topic that a network writes, with its use."""
    silent_ms = _silent_ms(plan)
    for fragment in plan.fragments:
        output = fragment.output
        for topic, what, readable in _written(fragment):
            role = f"{what} of fragment {fragment.name}"
            waits_ms = silent_ms[output.name] if topic == output.topic else 0
            by_need = topic in plan.kept.by_need
            yield topic, Taken(plan.network, role, readable, waits_ms, by_need)


def too_impatient(
    inputs: Iterable[ExternalStream], taken: Mapping[TopicName, Taken]
) -> Iterator[str]:
    """Warnings about streams that are idle before the last results of another network come."""
    for stream in inputs:
        found = taken.get(stream.topic)
        if found is None or stream.silence is not Silence.IDLE:
            continue
        if stream.idle_after_ms <= found.silent_ms:
            yield (
                f"stream {stream.name} steps aside after {durations.spell(stream.idle_after_ms)}, "
                f"and reads {found}, whose last results before a silence come "
                f"{durations.spell(found.silent_ms)} after the last record there: they are late "
                "here unless idle_after is longer"
            )


def conflicts(
    plan: Plan, inputs: Iterable[ExternalStream], taken: Mapping[TopicName, Taken]
) -> Iterator[Problem]:
    """Conflicts of a plan with other networks: at most one problem for each fragment and input."""
    for fragment in plan.fragments:
        topic = next((topic for topic, _, _ in _written(fragment) if topic in taken), None)
        if topic is not None:
            yield Problem(
                f"topic {topic} is {taken[topic]}",
                box=fragment.output.name,
                hint="choose another topic for the output, or another name for the network.",
            )
    for stream in inputs:
        found = taken.get(stream.topic)
        if found is not None and not found.readable:
            yield Problem(
                f"stream {stream.name} reads topic {stream.topic}, which is {found}",
                hint="its outputs and its dead letters can be read, its other topics cannot.",
            )


def _silent_ms(plan: Plan) -> dict[StreamName, int]:
    """For the output of each fragment, the time of `Taken.silent_ms`."""
    delay_ms: dict[StreamName, int] = {}
    waiting: set[StreamName] = set()
    for fragment in plan.fragments:  # those that write come before those that read
        name, shape = fragment.output.name, fragment.shape
        delay_ms[name] = span_ms(shape) + max(
            stream.idle_after_ms + stream.lateness_ms
            if isinstance(stream, ExternalStream)
            else delay_ms[stream.name]
            for stream in fragment.inputs
        )
        if shape.waits or any(stream.name in waiting for stream in fragment.inputs):
            waiting.add(name)
    return {name: ms if name in waiting else 0 for name, ms in delay_ms.items()}


def _written(fragment: Fragment) -> Iterator[tuple[TopicName, str, bool]]:
    """Every topic that a fragment writes, its role, and whether others may read it."""
    output, names = fragment.output.topic, fragment.names
    yield output, "the output", True
    yield boundaries_topic(output), "the topic of boundaries", False
    if fragment.tentative_topic is not None:
        yield fragment.tentative_topic, "the topic of tentative results", False
    yield names.dead_letters, "the topic of dead letters", True
    yield names.redrive, "the redrive topic", False
    yield names.markers, "the topic of commit markers", False
