"""Live nodes of all participants, with the fragments that each owns."""

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
        ((one.owner.participant, one.owner.node), str(one.id))
        for participant in sorted({record.participant for record in nodes})
        for one in catalog.snapshot(participant).fragments
        if one.owner is not None
    ]
    return tuple(
        ObservedNode(
            record,
            tuple(name for node, name in owned if node == (record.participant, record.node)),
        )
        for record in nodes
    )
