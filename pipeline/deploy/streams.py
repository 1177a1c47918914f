"""Lookup of streams by name or topic. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import RefusedError
from pipeline.ids import NetworkId, StreamName, TopicName
from pipeline.nearest import nearest_first
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class Arrow:
    """A stream of a deployed network that has a topic of its own."""

    network: NetworkId
    stream: StreamName
    topic: TopicName
    external: bool


def arrows(plans: Sequence[Plan]) -> tuple[Arrow, ...]:
    """Every stream with a topic, network by network, inputs first."""
    return tuple(dict.fromkeys(arrow for plan in plans for arrow in _of_plan(plan)))


def find(name: str, plans: Sequence[Plan]) -> Arrow | None:
    """Find a stream by `stream`, `network.stream` or its topic; None: no stream has this name.

    Raises:
        RefusedError: streams of several networks have this name, or it is a box inside a fragment,
            whose records are in no topic.
    """
    every = arrows(plans)
    by_topic = [arrow for arrow in every if arrow.topic == name]
    if by_topic:
        return by_topic[0]
    fitting = [a for a in every if name in {a.stream, f"{a.network}.{a.stream}"}]
    if len({arrow.topic for arrow in fitting}) > 1:
        raise RefusedError(
            f"{name} is a stream of several networks",
            hint=f"write one of: {', '.join(f'{a.network}.{a.stream}' for a in fitting)}.",
        )
    if fitting:
        return fitting[0]
    for plan in plans:
        for fragment in plan.fragments:
            for box in fragment.boxes:
                if name in {box.name, f"{plan.network}.{box.name}"}:
                    raise RefusedError(
                        f"{name} has no topic: it is computed inside fragment {fragment.name}",
                        hint=f"there is: {', '.join(choices(plans))}. Name it under `outputs` in "
                        "the document to give it one.",
                    )
    return None


def choices(plans: Sequence[Plan], near: str = "") -> tuple[str, ...]:
    """The names of all streams with a topic; with `near`, sorted by similarity to it."""
    names = list(dict.fromkeys(arrow.stream for arrow in arrows(plans)))
    return nearest_first(near, names)


def _of_plan(plan: Plan) -> Iterator[Arrow]:
    for fragment in plan.fragments:
        for stream in fragment.inputs:
            if isinstance(stream, ExternalStream):
                yield Arrow(plan.network, stream.name, stream.topic, external=True)
    for fragment in plan.fragments:
        yield Arrow(plan.network, fragment.output.name, fragment.output.topic, external=False)
