"""Snapshot reads of the catalog, with a number of requests independent of its size."""

from pipeline.catalog.formats import format_of
from pipeline.catalog.record_store import RecordStore
from pipeline.catalog.records import (
    DrainedRecord,
    FragmentRecord,
    NetworkRecord,
    NodeRecord,
    OwnerRecord,
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
    of_drained = znodes.drained(participant)
    of_transfers = znodes.transfers(participant)
    upper = records.values(znodes.format(), of_drained, of_transfers, *of_nodes, *of_networks)
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
    )
