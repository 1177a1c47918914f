"""A catalog in memory for polls."""

from dataclasses import dataclass, field

from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.polls.catalog import CatalogPoll
from pipeline.agent.suspicions import Suspicions
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
    Standby,
)
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
)
from pipeline.names import Znodes
from pipeline.system_clock import SystemClock
from tests.memory_store import MemoryStore, MemoryTree

OWNER = ParticipantId("local")
NETWORK = NetworkId(ParticipantId("local"), NetworkName("net"))
MOVING = FragmentName("moving")
VERSION = NetworkVersion(1)
LIFE = NetworkLife("one")


def node_record(name: str) -> NodeRecord:
    """A node of the participant."""
    return NodeRecord(NodeId(name), OWNER, "here", 1, Millis(0), "1", reads=1)


@dataclass
class World:
    """One tree, the session of a poll, and the events that it sent."""

    tree: MemoryTree = field(default_factory=MemoryTree)
    events: list[Event] = field(default_factory=list)
    logged: list[LoggedEvent] = field(default_factory=list)
    suspicions: Suspicions = field(default_factory=lambda: Suspicions(SystemClock()))
    standbys: list[Standby] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.tree)
        self.catalog = Catalog(self.store, Znodes(""))
        self.catalog.format.ensure(OWNER)
        self.catalog.nodes.register(node_record("here"))
        self.poll = CatalogPoll(
            self.catalog,
            node_record("here"),
            SystemClock(),
            self.events.append,
            self.logged.append,
            self.suspicions,
            lambda: tuple(self.standbys),
        )

    def deploy(self) -> None:
        """Deploy one fragment."""
        version = NetworkVersionRecord(NETWORK, VERSION, "", (), "digest", Millis(0), ())
        running = DesiredState.RUNNING
        record = FragmentRecord(NETWORK, MOVING, VERSION, running, "digest", (), None, (), None)
        network = NetworkRecord(NETWORK, VERSION, LIFE, (), ())
        self.catalog.networks.deploy(network, version, (record,), None)

    def assigned(self) -> list[str]:
        """The fragments assigned to this node in the last read of the catalog."""
        read = [event for event in self.events if isinstance(event, CatalogRead)]
        return [one.id.fragment for one in read[-1].snapshot.assigned_to(NodeId("here"))]
