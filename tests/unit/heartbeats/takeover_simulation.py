"""Simulated nodes with failure detectors, whose connections to Kafka and ZooKeeper are cut apart.

Detectors, suspicions, reads of the catalog, placement and claims are the real code, over a catalog
in memory. Simulated are time, in ticks, the log of heartbeats, which arrive late in it, and how
Kafka fences: it refuses a batch of an epoch below the highest one that has begun.

| fault | heartbeats of the node | its reads of them | its session | its lane |
|---|---|---|---|---|
| `kafka` is cut | are lost | none | lasts | writes nothing |
| `zookeeper` is cut | come | as usual | ends after ten seconds | writes until it is fenced |
| it is suspended | none | none | ends after ten seconds | writes when it wakes up |
| its agent hangs | come, with that age | as usual | lasts | writes until it is fenced |
| its process is killed | a last one | none | ends after ten seconds | none |
"""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from pipeline.agent.events import CatalogRead, Event
from pipeline.agent.polls.catalog import CatalogPoll
from pipeline.agent.suspicions import Suspicions
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.snapshot import CatalogSnapshot
from pipeline.clock import steady_ms
from pipeline.errors import RetryError
from pipeline.heartbeats.detector import Detector, Suspect, Suspicion, Why
from pipeline.heartbeats.heartbeat import INTERVAL_MS, Heartbeat
from pipeline.ids import Millis, NetworkVersion, NodeId
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import (
    MOVING,
    NOW,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    node,
)
from tests.unit.deploy.twins import TwinClock

LIMIT_MS: Final = 1_000
TICK_S: Final = INTERVAL_MS / 1_000
SESSION_S: Final = 10.0
DELAY_MAX: Final = 3
"""A heartbeat comes at most so many ticks late."""
FENCING_MAX: Final = 5
"""A claim has fenced the owner before at most so many ticks later."""


@dataclass(slots=True)
class Machine:
    """A node: its process, its connections, and its lane.

    Args:
        record: of its present life.
        store: its session.
        clock: of all.
    """

    record: NodeRecord
    store: MemoryStore
    clock: TwinClock
    kafka: bool = True
    zookeeper: bool = True
    suspended: bool = False
    killed: bool = False
    hangs_since_s: float | None = None
    lost_s: float | None = None
    """Since when ZooKeeper does not hear it."""
    believed: frozenset[Suspect] = frozenset()
    """Suspected whatever its heartbeats say."""
    lane: int | None = None
    """The epoch of its lane; it writes from `writes_from` on."""
    writes_from: int = 0
    position: int = 0
    number: int = 0
    sent: deque[tuple[int, Heartbeat]] = field(default_factory=deque)
    """Heartbeats on their way, each with the tick in which it arrives."""
    snapshot: CatalogSnapshot | None = None
    suspected: frozenset[Suspect] = frozenset()
    detector: Detector = field(init=False)
    suspicions: Suspicions = field(init=False)
    poll: CatalogPoll = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin the present life."""
        catalog = Catalog(self.store, Znodes())
        catalog.nodes.register(self.record)
        self.detector = Detector(self.record.node, self.record.started_at_ms, LIMIT_MS)
        self.suspicions = Suspicions(self.clock)
        self.poll = CatalogPoll(
            catalog, self.record, self.clock, self._take, lambda _: None, self.suspicions, tuple
        )

    @property
    def name(self) -> NodeId:
        """Of the node."""
        return self.record.node

    @property
    def catalog(self) -> Catalog:
        """Through its session."""
        return self.poll.catalog

    @property
    def runs(self) -> bool:
        """Whether its process does anything."""
        return not self.suspended and not self.killed

    def _take(self, event: Event) -> None:
        self.snapshot = event.snapshot if isinstance(event, CatalogRead) else None


class Simulation:
    """Some nodes and one fragment, from the first claim on.

    Args:
        random: of delays.
        names: of the nodes.
    """

    def __init__(self, random: Random, *names: str) -> None:
        self.random, self.clock = random, TwinClock()
        self.tick = 0
        self.log: list[Heartbeat] = []
        self.begun = 0
        """The highest epoch that has begun: Kafka refuses a batch of any other one."""
        self.accepted: list[tuple[float, NodeId, int]] = []
        """When, by whom and in which epoch batches were written."""
        self.claims: list[tuple[float, NodeId]] = []
        self._tree = tree = MemoryTree()
        deployed(Catalog(MemoryStore(tree), Znodes()))
        self.machines = {
            name: Machine(node(NodeId(name)), MemoryStore(tree), self.clock) for name in names
        }

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        for _ in range(round(seconds / TICK_S)):
            self.tick += 1
            self.clock.sleep(TICK_S)
            for machine in self.machines.values():
                self._send(machine)
            for machine in self.machines.values():
                self._session(machine)
                if machine.runs:
                    self._read(machine)
                    if machine.hangs_since_s is None:
                        self._decide(machine)
                    self._write(machine)

    def kill(self, name: str) -> None:
        """End a process; its child sends the last heartbeat."""
        machine = self.machines[name]
        machine.killed, machine.lane = True, None
        self._put(machine, ended=True)

    def start(self, name: str) -> None:
        """Start a killed process again: another life, which reads from the end of the log on."""
        machine = self.machines[name]
        life = Millis(NOW + 1 + round(self.clock.passed_s * 1_000))
        machine.record = replace(machine.record, started_at_ms=life)
        machine.store.expire()
        machine.killed, machine.number, machine.position = False, 0, len(self.log)
        machine.hangs_since_s, machine.snapshot, machine.believed = None, None, frozenset()
        machine.suspended, machine.zookeeper, machine.kafka = False, True, True
        machine.begin()

    def change_mode(self, secondaries: int) -> None:
        """Deploy the fragment with another number of secondaries, as version 2."""
        record = replace(fragment(), active_standbys=secondaries)
        before = NetworkVersion(1)
        Catalog(MemoryStore(self._tree), Znodes()).networks.deploy(
            network(2), network_version(2), (record,), before
        )

    @property
    def writer(self) -> NodeId | None:
        """Whose batch was written last; None: none within the last second."""
        now_s = self.clock.passed_s
        return next((by for at, by, _ in self.accepted[-1:] if now_s - at <= 1.0), None)

    def pauses_s(self, since_s: float) -> Iterator[float]:
        """The times between batches since a moment."""
        times = [at for at, _, _ in self.accepted if at >= since_s]
        for before, after in zip([since_s, *times], [*times, self.clock.passed_s], strict=True):
            yield after - before

    def _put(self, machine: Machine, *, ended: bool = False) -> None:
        machine.number += 1
        since_s, now_ms = machine.hangs_since_s, steady_ms(self.clock)
        agent_ms = 0 if since_s is None else round((self.clock.passed_s - since_s) * 1_000)
        arrives = self.tick + self.random.randint(0, DELAY_MAX)
        beat = Heartbeat(
            machine.name, machine.record.started_at_ms, machine.number, now_ms, agent_ms, ended
        )
        machine.sent.append((arrives, beat))

    def _send(self, machine: Machine) -> None:
        """Send a heartbeat; those that arrive now are in the log, in their order."""
        if machine.runs:
            self._put(machine)
        if not machine.kafka:
            machine.sent.clear()
        while machine.sent and machine.sent[0][0] <= self.tick:
            self.log.append(machine.sent.popleft()[1])

    def _session(self, machine: Machine) -> None:
        """ZooKeeper ends the session of a node that it has not heard for a while."""
        if machine.runs and machine.zookeeper:
            machine.lost_s = None
            machine.store.resume()
            return
        now_s = self.clock.passed_s
        machine.lost_s = now_s if machine.lost_s is None else machine.lost_s
        if now_s - machine.lost_s >= SESSION_S:
            machine.store.expire()
            machine.lost_s = now_s
        machine.store.suspend()

    def _read(self, machine: Machine) -> None:
        """Read the heartbeats that are there, and judge."""
        now_ms = steady_ms(self.clock)
        if machine.kafka:
            for heartbeat in self.log[machine.position :]:
                machine.detector.take(heartbeat, now_ms)
            machine.position = len(self.log)
        found = dict(machine.detector.suspicions(now_ms))
        found |= dict.fromkeys(machine.believed, Suspicion(Why.SILENT, 1, 1, 0, now_ms))
        machine.suspected = frozenset(found)
        machine.suspicions.note(found)

    def _decide(self, machine: Machine) -> None:
        """Read the catalog; end a lane whose fragment another node has, and claim."""
        machine.poll.read()
        snapshot = machine.snapshot
        if snapshot is None:  # without its session nothing is decided, and the lane goes on
            return
        owner = machine.catalog.owners.get(TOLLS, MOVING)
        if machine.lane is not None:
            if owner is None or owner.epoch != machine.lane:
                machine.lane = None
            return
        if machine.kafka and snapshot.assigned_to(machine.name):
            self._claim(machine)

    def _claim(self, machine: Machine) -> None:
        with suppress(RetryError):
            claim = machine.catalog.owners.claim(
                TOLLS, MOVING, machine.record, NOW, is_suspected=machine.suspicions.has
            )
            machine.lane = claim.epoch
            machine.writes_from = self.tick + self.random.randint(1, FENCING_MAX)
            self.claims.append((self.clock.passed_s, machine.name))

    def _write(self, machine: Machine) -> None:
        """Write a batch, if Kafka takes it; the first one fences earlier epochs."""
        if machine.lane is None or not machine.kafka or self.tick < machine.writes_from:
            return
        if machine.lane < self.begun:
            machine.lane = None  # fenced
            return
        self.begun = machine.lane
        self.accepted.append((self.clock.passed_s, machine.name, machine.lane))
