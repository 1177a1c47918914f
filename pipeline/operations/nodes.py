"""Live nodes of all participants, with the fragments that each owns."""

from dataclasses import dataclass

from pipeline.catalog.load_records import NodeLoadRecord
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.operations.connections import Connections
from pipeline.operations.status.loads import loads_of


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node that is up.

    Args:
        record: its record.
        fragments: those it owns, as `network.fragment`.
        running: how many of them should run.
        drained_since_ms: since when it is drained; None: it is not.
        load: as it has last metered it; None: it has not.
    """

    record: NodeRecord
    fragments: tuple[str, ...]
    running: int = 0
    drained_since_ms: Millis | None = None
    load: NodeLoadRecord | None = None


def nodes_up(connections: Connections) -> tuple[ObservedNode, ...]:
    """Every node that is up."""
    catalog = connections.catalog
    nodes = catalog.nodes.all()
    participants = sorted({record.participant for record in nodes})
    drained = {one: catalog.drains.of(one) for one in participants}
    loads = loads_of(nodes, catalog.loads.of(*participants))
    owned: dict[tuple[ParticipantId, NodeId], list[Deployed]] = {}
    for participant in participants:
        for one in catalog.snapshot(participant).fragments:
            if one.owner is not None:
                owned.setdefault((one.owner.participant, one.owner.node), []).append(one)
    return tuple(
        ObservedNode(
            record,
            tuple(str(one.id) for one in here),
            sum(one.running for one in here),
            drained[record.participant].get(record.node),
            loads.get((record.participant, record.node)),
        )
        for record in nodes
        for here in (owned.get((record.participant, record.node), []),)
    )
