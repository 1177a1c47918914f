"""Topics of other deployed networks: only one network may write a topic. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pipeline.errors import Problem
from pipeline.ids import NetworkId, TopicName
from pipeline.names import boundaries_topic
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment, Plan


@dataclass(frozen=True, slots=True)
class Taken:
    """Use of a topic by another network that writes it.

    Args:
        what: the topic's role in that network, in a few words.
        readable: whether it contains records of a stream or dead letters, which others may read.
    """

    network: NetworkId
    what: str
    readable: bool

    def __str__(self) -> str:
        return f"{self.what} of network {self.network} of participant {self.network.participant}"


def written_topics(plan: Plan) -> Iterator[tuple[TopicName, Taken]]:
    """Every topic that a network writes, with its use."""
    for fragment in plan.fragments:
        for topic, what, readable in _written(fragment):
            role = f"{what} of fragment {fragment.name}"
            yield topic, Taken(plan.network, role, readable)


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


def _written(fragment: Fragment) -> Iterator[tuple[TopicName, str, bool]]:
    """Every topic that a fragment writes, its role, and whether others may read it."""
    output, names = fragment.output.topic, fragment.names
    yield output, "the output", True
    yield boundaries_topic(output), "the topic of boundaries", False
    yield names.dead_letters, "the topic of dead letters", True
    yield names.redrive, "the redrive topic", False
    yield names.markers, "the topic of commit markers", False
