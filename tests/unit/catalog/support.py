"""Records for tests of the catalog."""

from dataclasses import replace

from brokers.memory_store import MemoryStore, MemoryTree
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    FragmentStatus,
    LaneState,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
)
from pipeline.ids import (
    Epoch,
    FragmentName,
    Millis,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.names import Znodes

TOLLS = NetworkName("tolls")
ME = ParticipantId("local")
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
    held_by="",
    held_ms=None,
    held_since_ms=None,
    held_silent_since_ms=None,
    steps_ms=None,
)
"""What is reported of a lane that has just started."""


def session(tree: MemoryTree) -> tuple[MemoryStore, Catalog]:
    """A session on a tree, and a catalog on it."""
    store = MemoryStore(tree)
    return store, Catalog(store, Znodes())


def network(version: int = 1, life: NetworkLife = LIFE) -> NetworkRecord:
    """The network `tolls`."""
    made = (TopicName("tolls.moving"),)
    return NetworkRecord(TOLLS, ME, NetworkVersion(version), life, made, ())


def network_version(version: int = 1) -> NetworkVersionRecord:
    """A version of the network `tolls`."""
    return NetworkVersionRecord(
        TOLLS, NetworkVersion(version), "network: tolls\n", (), f"digest{version}", NOW, ()
    )


def fragment(name: FragmentName = MOVING, version: int = 1, digest: str = "d1") -> FragmentRecord:
    """A fragment of it that should run."""
    number = NetworkVersion(version)
    return FragmentRecord(
        TOLLS, name, number, DesiredState.RUNNING, digest, (), choice=None, begins=(), succeeds=None
    )


def node(name: NodeId = NODE1, pid: int = 7) -> NodeRecord:
    """A node that is up."""
    return NodeRecord(name, ME, "host", pid, NOW, "0.1.0", reads=1)


def report(epoch: int, records_in: int = 0, name: FragmentName = MOVING) -> FragmentStatus:
    """What an owner reports."""
    return replace(NOTHING_READ, fragment=name, epoch=Epoch(epoch), records_in=records_in)


def deployed(catalog: Catalog, *names: FragmentName) -> None:
    """Set the catalog up and deploy version 1 with these fragments."""
    catalog.ensure_format()
    records = tuple(fragment(name) for name in names or (MOVING,))
    catalog.deploy(network(), network_version(), records, None)
