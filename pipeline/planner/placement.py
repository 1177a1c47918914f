"""Placement of boxes while a network is planned: on which nodes, and apart from which boxes."""

from collections.abc import Iterator

from pipeline.ids import BoxName, StreamName
from pipeline.labels import Selector
from pipeline.names import stream_of_box
from pipeline.network.boxes.route import Branch
from pipeline.network.model import Box, Network, expressions


def nodes_of(network: Network, box: Box) -> Selector:
    """The nodes that a box may run on: its own, else its output's, else the network's.

    A box that passes have made has those of the boxes of the document that it computes, which are
    equal: see `private_to` in `draft.py`. A branch of a route has those of the route.
    """
    if isinstance(box, Branch):
        box = next(one for one in network.boxes if stream_of_box(one.name) == box.input)
    return next(_declared(network, box), network.nodes)


def named_apart(network: Network) -> frozenset[StreamName]:
    """The streams of the boxes that are to run apart from another one: each ends a fragment."""
    return frozenset(stream_of_box(name) for pair in network.apart for name in pair)


def _declared(network: Network, box: Box) -> Iterator[Selector]:
    settings = {one.of: one.nodes for one in network.box_settings}
    own = settings.get(box.name)
    if own is not None:
        yield own
    for output in network.outputs:
        if output.stream == stream_of_box(box.name) and output.nodes is not None:
            yield output.nodes
    if box.name not in settings:
        for expression in expressions(box):
            origin = settings.get(BoxName(expression.origin.box))
            if origin is not None:
                yield origin
