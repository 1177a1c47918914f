"""Placement of boxes while a network is planned: on which nodes, and apart from which boxes."""

from pipeline.ids import StreamName
from pipeline.labels import Selector
from pipeline.names import stream_of_box
from pipeline.network.boxes.route import Branch
from pipeline.network.model import Box, Network


def nodes_of(network: Network, box: Box) -> Selector:
    """The nodes that a box may run on: its own, else its output's, else the network's.

    A branch of a route has those of the route. Boxes that passes make have the network's: they are
    made of boxes that declare none.
    """
    if isinstance(box, Branch):
        box = next(one for one in network.boxes if stream_of_box(one.name) == box.input)
    found = declared_nodes(network, box)
    return network.nodes if found is None else found


def declared_nodes(network: Network, box: Box) -> Selector | None:
    """The nodes that a box, or its output, declares; None: neither does."""
    own = (one.nodes for one in network.box_settings if one.of == box.name)
    stream = stream_of_box(box.name)
    outputs = (one.nodes for one in network.outputs if one.stream == stream)
    return next((nodes for nodes in (*own, *outputs) if nodes is not None), None)


def named_apart(network: Network) -> frozenset[StreamName]:
    """The streams of the boxes that are to run apart from another one: each ends a fragment."""
    return frozenset(stream_of_box(name) for pair in network.apart for name in pair)
