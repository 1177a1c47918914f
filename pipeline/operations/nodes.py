"""Nodes that are up, with the fragments that each of them owns."""

from dataclasses import dataclass

from pipeline.catalog.records import NodeRecord
from pipeline.operations.connections import Connections


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node that is up; `fragments`: those it owns, as `network.fragment`."""

    record: NodeRecord
    fragments: tuple[str, ...]


def nodes_up(connections: Connections) -> tuple[ObservedNode, ...]:
    """Every node that is up."""
    catalog = connections.catalog
    nodes = catalog.nodes.all()
    owned = [
        (one.owner.node, str(one.id))
        for one in catalog.snapshot().fragments
        if one.owner is not None
    ]
    return tuple(
        ObservedNode(record, tuple(fragment for node, fragment in owned if node == record.node))
        for record in nodes
    )
