"""Live nodes of all participants, with the fragments that each owns."""

from dataclasses import dataclass

from pipeline.catalog.records import NodeRecord
from pipeline.ids import Millis
from pipeline.operations.connections import Connections


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node that is up.

    Args:
        record: its record.
        fragments: those it owns, as `network.fragment`.
        drained_since_ms: since when it is drained; None: it is not.
    """

    record: NodeRecord
    fragments: tuple[str, ...]
    drained_since_ms: Millis | None = None


def nodes_up(connections: Connections) -> tuple[ObservedNode, ...]:
    """Every node that is up."""
    catalog = connections.catalog
    nodes = catalog.nodes.all()
    participants = sorted({record.participant for record in nodes})
    drained = {one: catalog.drains.of(one) for one in participants}
    owned = [
        ((one.owner.participant, one.owner.node), str(one.id))
        for participant in participants
        for one in catalog.snapshot(participant).fragments
        if one.owner is not None
    ]
    return tuple(
        ObservedNode(
            record,
            tuple(name for node, name in owned if node == (record.participant, record.node)),
            drained[record.participant].get(record.node),
        )
        for record in nodes
    )
