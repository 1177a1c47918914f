"""The draft that the passes transform: the network so far, and the results so far."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.ids import BoxName, NetworkId, ParticipantId, StreamName
from pipeline.names import stream_of_box
from pipeline.network.model import Box, ExternalStream, Network, Output
from pipeline.planner.placement import declared_nodes, named_apart
from pipeline.planner.plan import Fragment, NewTopic
from pipeline.planner.rename_columns import plain_column

MAX_NAME = 63
"""As in `pipeline.names.NAME_PATTERN`."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A plan under construction. Passes return a new one and never change their input."""

    owner: ParticipantId
    network: Network
    notes: tuple[str, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    topics: tuple[NewTopic, ...] = ()

    @property
    def network_id(self) -> NetworkId:
        """The network as one of its owner's."""
        return NetworkId(self.owner, self.network.name)

    def noting(self, note: str) -> "Draft":
        """A copy with one more note about what was done."""
        return replace(self, notes=(*self.notes, note))

    def with_boxes(self, boxes: tuple[Box, ...]) -> "Draft":
        """A copy with other boxes, which must be in topological order."""
        return replace(self, network=replace(self.network, boxes=boxes))


def readers_of(network: Network) -> Mapping[StreamName, tuple[Box, ...]]:
    """The readers of each stream, each once, in topological order; every stream has an entry."""
    readers: dict[StreamName, tuple[Box, ...]] = dict.fromkeys(network.by_name(), ())
    for box in network.boxes:
        for stream in dict.fromkeys(box.inputs):
            readers[stream] = (*readers[stream], box)
    return readers


def outputs_of(network: Network) -> Mapping[StreamName, Output]:
    """The declared outputs by stream."""
    return {output.stream: output for output in network.outputs}


def private_to(network: Network, box: Box, reader: Box) -> bool:
    """Whether `reader` is the only reader of `box`, so that `box` may be rewritten.

    Boxes that declare their nodes, or run apart, stay as they are.
    """
    stream, apart = stream_of_box(box.name), named_apart(network)
    if stream in outputs_of(network) or readers_of(network)[stream] != (reader,):
        return False
    if apart & {stream, stream_of_box(reader.name)}:
        return False
    return declared_nodes(network, box) is None and declared_nodes(network, reader) is None


def unused_name(network: Network, wish: str) -> BoxName:
    """A name for a box that the planner adds: the wish, with a number appended if it is taken."""
    taken = set(network.by_name())
    name, count = wish[:MAX_NAME], 2
    while name in taken:
        suffix = f"_{count}"
        name, count = wish[: MAX_NAME - len(suffix)] + suffix, count + 1
    return BoxName(name)


def event_time_column(stream: ExternalStream | Box) -> str | None:
    """The column of a stream that always equals a row's event time, if there is one."""
    if isinstance(stream, ExternalStream):
        column = plain_column(stream.event_time)
        return column.name if column else None
    return stream.event_time_column


def key_columns(stream: ExternalStream | Box) -> tuple[str, ...]:
    """The key columns of a stream; empty for an external one, whose key bytes pass."""
    return () if isinstance(stream, ExternalStream) else stream.key
