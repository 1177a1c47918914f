"""Records for tests of the catalog."""

from collections.abc import Sequence
from dataclasses import replace

from brokers.versioned_store import Versioned
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.fragment_status import FragmentStatus, LaneState
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
    OwnerRecord,
)
from pipeline.catalog.snapshot import Leaving
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree

ME = ParticipantId("local")
TOLLS = NetworkId(ME, NetworkName("tolls"))
MOVING = FragmentName("moving")
SPEED = FragmentName("average_speed")
NODE1 = NodeId("node1")
NODE2 = NodeId("node2")
LIFE = NetworkLife("4d65647573610001")
NOW = Millis(1_700_000_000_000)
NOTHING_READ = FragmentStatus(
    network=TOLLS,
    fragment=MOVING,
    node=NODE1,
    epoch=Epoch(1),
    state=LaneState.RUNNING,
    reported_at_ms=NOW,
    life=NOW,
    records_in=0,
    records_out=0,
    lag_records=None,
    lag_ms=None,
    boundary_ms=None,
    dead_letters=0,
    late_dropped=0,
    skipped=0,
    restarts=0,
    batch_ms=0,
    last_error="",
    inputs=(),
    rebuild_since_ms=None,
    rebuild_offsets=0,
    rebuild_read=0,
    rebuild_batches=0,
    rebuild_batches_done=0,
    held_by="",
    held_partition=None,
    held_ms=None,
    held_since_ms=None,
    held_silent_since_ms=None,
    steps_ms=None,
    stalled_since_ms=None,
    event_ms=None,
    late_since_ms=None,
    late_span_ms=0,
    late_read=0,
    late_records=0,
    settles_at_ms=None,
    unreachable="",
    writers=(),
)
"""Status of a lane that has just started."""


def session(tree: MemoryTree) -> tuple[MemoryStore, Catalog]:
    """Create a session on a tree, and a catalog on it."""
    store = MemoryStore(tree)
    return store, Catalog(store, Znodes())


def network(version: int = 1, life: NetworkLife = LIFE) -> NetworkRecord:
    """The network `tolls`."""
    made = (TopicName("tolls.moving"),)
    return NetworkRecord(TOLLS, NetworkVersion(version), life, made, ())


def network_version(version: int = 1) -> NetworkVersionRecord:
    """A version of the network `tolls`."""
    return NetworkVersionRecord(
        TOLLS, NetworkVersion(version), "network: tolls\n", (), f"digest{version}", NOW, ()
    )


def fragment(name: FragmentName = MOVING, version: int = 1, digest: str = "d1") -> FragmentRecord:
    """A fragment of `tolls` whose desired state is running."""
    number = NetworkVersion(version)
    return FragmentRecord(
        TOLLS, name, number, DesiredState.RUNNING, digest, (), choice=None, begins=(), succeeds=None
    )


def node(name: NodeId = NODE1, pid: int = 7) -> NodeRecord:
    """A node that is up."""
    return NodeRecord(name, ME, "host", pid, NOW, "0.1.0", reads=1)


def report(epoch: int, records_in: int = 0, name: FragmentName = MOVING) -> FragmentStatus:
    """A status report of an owner."""
    return replace(NOTHING_READ, fragment=name, epoch=Epoch(epoch), records_in=records_in)


def deployed(catalog: Catalog, *names: FragmentName) -> None:
    """Set the catalog up and deploy version 1 with these fragments."""
    catalog.format.ensure(ME)
    records = tuple(fragment(name) for name in names or (MOVING,))
    catalog.networks.deploy(network(), network_version(), records, None)


OF_MOVING = FragmentId(TOLLS, MOVING)


def leaving(catalog: Catalog, owner: OwnerRecord, fragment: FragmentId = OF_MOVING) -> Leaving:
    """What a release of a fragment by an owner is decided by, as the catalog is now."""
    found = catalog.snapshot(fragment.network.participant)
    record = next(one.record for one in found.fragments if one.id == fragment)
    transfer = next((one for one in found.transfers if one.id == fragment), None)
    return Leaving(owner, NODE2, record, transfer, owner.node in found.drained)


class CountingStore(MemoryStore):
    """A session that counts its requests; a request for many paths is one."""

    def __init__(self, tree: MemoryTree) -> None:
        super().__init__(tree)
        self._shared = tree
        self.requests = 0

    def get(self, path: str) -> Versioned | None:
        """One request."""
        self.requests += 1
        return super().get(path)

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """One request."""
        self.requests += 1
        return tuple(map(self._shared.get, paths))

    def children(self, path: str) -> tuple[str, ...]:
        """One request."""
        self.requests += 1
        return super().children(path)

    def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """One request."""
        self.requests += 1
        return tuple(map(self._shared.children, paths))


def filled(networks: int, fragments: int) -> MemoryTree:
    """Create a catalog with so many networks, each with so many claimed and reported fragments."""
    tree = MemoryTree()
    catalog = Catalog(MemoryStore(tree), Znodes(""))
    catalog.format.ensure(ME)
    catalog.nodes.register(node())
    for number in range(networks):
        name = NetworkId(ME, NetworkName(f"net{number}"))
        records = [
            replace(fragment(FragmentName(f"f{one}")), network=name) for one in range(fragments)
        ]
        version = replace(network_version(), network=name)
        catalog.networks.deploy(replace(network(), network=name), version, tuple(records), None)
        for record in records:
            epoch = catalog.owners.claim(name, record.fragment, node(), NOW).epoch
            status = replace(report(epoch, name=record.fragment), network=name)
            catalog.statuses.report(status)
    return tree
