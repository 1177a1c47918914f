"""The graph as text for a terminal: one line for each stream and box, topics in brackets."""

from pipeline.ids import BoxName, StreamName
from pipeline.names import derived_topic
from pipeline.network.model import Network

_ARROW = "->"


def as_text(network: Network) -> str:
    """The network, streams from outside first, then boxes in the order in which data flows.

    A line names a stream, what makes it, and who reads it. A topic in brackets is where a stream
    comes in or goes out; a box that nobody reads ends in its own topic. Plain ASCII, no colour, no
    newline at the end.
    """
    rows = [
        (str(stream.name), f"[{stream.topic}]", _readers(network, stream.name))
        for stream in network.streams
    ]
    for box in network.boxes:
        name = StreamName(box.name)
        topics = [f"[{output.topic}]" for output in network.outputs if output.stream == name]
        goes_to = [*_readers(network, name), *topics]
        ends = goes_to or [f"[{derived_topic(network.name, box.name)}]"]
        rows.append((str(name), f"{box.kind} {', '.join(box.inputs)}", ends))
    name_width = max((len(row[0]) for row in rows), default=0)
    what_width = max((len(row[1]) for row in rows), default=0)
    lines = [
        f"  {name:<{name_width}}  {what:<{what_width}}  {_ARROW} {', '.join(ends)}"
        if ends
        else f"  {name:<{name_width}}  {what}"
        for name, what, ends in rows
    ]
    return "\n".join([f"network {network.name}", *lines])


def _readers(network: Network, name: StreamName) -> list[str]:
    """The boxes that read a stream, in the network's order."""
    readers: list[BoxName] = [box.name for box in network.boxes if name in box.inputs]
    return [str(reader) for reader in readers]
