"""Snapshot reads of the catalog, with a number of requests independent of its size."""

from collections.abc import Iterable, Mapping

from pipeline.catalog.formats import format_of
from pipeline.catalog.record_store import RecordStore, Values
from pipeline.catalog.records import (
    DrainedRecord,
    FragmentRecord,
    NetworkRecord,
    NodeRecord,
    OwnerRecord,
    Standby,
    StandbysRecord,
    TransfersRecord,
)
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import NetworkId, NetworkName, NodeId, ParticipantId


def read_snapshot(records: RecordStore, participant: ParticipantId) -> CatalogSnapshot:
    """The fragments of a participant with their owners, and its nodes that are up; four requests.

    Records of other participants are not read. The tree has two levels, each read with one request
    for names and one for values. The read is not atomic: nodes and networks are read before
    fragments, and fragments before owners.
    Every change of a deployed version or desired state raises the revision. So a caller that reads
    the revision before the snapshot detects concurrent changes by a different revision later, and
    reads a new snapshot.

    Raises:
        NewerFormatError: the catalog's format was raised beyond this program's.
        RefusedError: the catalog is not set up.
    """
    znodes = records.znodes
    folders = (znodes.nodes(participant), znodes.networks(participant))
    nodes, names = records.store.children_all(folders)
    of_nodes = [znodes.node(participant, NodeId(name)) for name in nodes]
    of_networks = [znodes.network(NetworkId(participant, NetworkName(name))) for name in names]
    of_standbys = {name: znodes.standbys_of(participant, NodeId(name)) for name in nodes}
    of_drained = znodes.drained(participant)
    of_transfers = znodes.transfers(participant)
    of_all = (of_drained, of_transfers)
    upper = records.values(znodes.format(), *of_all, *of_nodes, *of_networks, *of_standbys.values())
    format_of(upper, znodes.format())
    alive = [upper.record(NodeRecord, path) for path in of_nodes]
    networks = [upper.record(NetworkRecord, path) for path in of_networks]
    deployed = {record.network: record for record in networks if record is not None}
    ids = records.fragment_ids(deployed)
    of_fragments = [znodes.fragment(one.network, one.fragment) for one in ids]
    of_owners = [znodes.owner(one.network, one.fragment) for one in ids]
    lower = records.values(*of_fragments, *of_owners)
    fragments = [lower.record(FragmentRecord, path) for path in of_fragments]
    owners = [lower.record(OwnerRecord, path) for path in of_owners]
    drained = upper.record(DrainedRecord, of_drained)
    transfers = upper.record(TransfersRecord, of_transfers)
    return CatalogSnapshot(
        tuple(record for record in alive if record is not None),
        tuple(
            Deployed(deployed[record.network], record, owner)
            for record, owner in zip(fragments, owners, strict=True)
            if record is not None
        ),
        frozenset(node for node, _ in drained.nodes) if drained else frozenset(),
        transfers.transfers if transfers else (),
        _standbys(upper, alive, of_standbys),
    )


def _standbys(
    upper: Values, nodes: Iterable[NodeRecord | None], paths: Mapping[str, str]
) -> Mapping[NodeId, tuple[Standby, ...]]:
    """The standbys of nodes that have reported them in their present life."""
    found: dict[NodeId, tuple[Standby, ...]] = {}
    for node in nodes:
        record = None if node is None else upper.record(StandbysRecord, paths[node.node])
        if node is not None and record is not None and record.life == node.started_at_ms:
            found[node.node] = record.standbys
    return found
