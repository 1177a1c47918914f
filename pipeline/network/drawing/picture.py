"""The contents of a drawing: topics, boxes, and groups of boxes."""

from dataclasses import dataclass

from pipeline.ids import NetworkId, ParticipantId
from pipeline.names import derived_topic, stream_of_box
from pipeline.network.model import Network


@dataclass(frozen=True, slots=True)
class Inflow:
    """A stream that a part reads from a topic."""

    name: str
    topic: str


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A box of a part.

    Args:
        inputs: streams and earlier boxes of the part, by name.
        topics: the topics its stream is written to.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """Boxes with a border around them. `boxes` are in topological order."""

    inflows: tuple[Inflow, ...]
    boxes: tuple[DrawnBox, ...]
    name: str = ""
    """Label of the border; empty: no border."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A network, in one part or in several."""

    network: str
    parts: tuple[Part, ...]

    def outside(self) -> tuple[Inflow, ...]:
        """The streams that no part writes, each topic once."""
        written = {topic for part in self.parts for box in part.boxes for topic in box.topics}
        found = {
            inflow.topic: inflow
            for part in self.parts
            for inflow in part.inflows
            if inflow.topic not in written
        }
        return tuple(found.values())


def picture(network: Network, owner: ParticipantId) -> Picture:
    """A network as its document describes it, in one part without a border.

    The stream of a box without readers ends in its own topic, if it is no output; the name of
    this topic begins with `owner`.
    """
    network_id = NetworkId(owner, network.name)
    chosen = {output.stream: (str(output.topic),) for output in network.outputs}
    read = {stream for box in network.boxes for stream in box.inputs}
    boxes = []
    for box in network.boxes:
        stream = stream_of_box(box.name)
        own = () if stream in read else (str(derived_topic(network_id, box.name)),)
        inputs = tuple(map(str, box.inputs))
        boxes.append(DrawnBox(str(box.name), box.kind, inputs, chosen.get(stream, own)))
    inflows = tuple(Inflow(str(stream.name), str(stream.topic)) for stream in network.streams)
    return Picture(str(network.name), (Part(inflows, tuple(boxes)),))
