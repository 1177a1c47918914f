"""Facts of fragments and topics, from the catalog and Kafka."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brokers.kafka_interface import FETCH_WAIT_MS, Isolation
from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.reader import MemoryReader
from brokers.records import NewTopicSpec
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    OwnerRecord,
    Standby,
)
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.deploy.apply import compare, deploy
from pipeline.deploy.documents import read_document
from pipeline.deploy.expiring import Search
from pipeline.doctor.facts import ObservedQueue, ObservedSecondaries
from pipeline.doctor.lookups import (
    clocks_of,
    expiring_facts,
    overdue_of,
    queued_of,
    replicas,
    secondaries_of,
)
from pipeline.errors import NotAllowedError
from pipeline.heartbeats.clocks import ClockOffset
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.steps import StepAge
from pipeline.heartbeats.topic import topic_spec
from pipeline.ids import (
    Epoch,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    ParticipantId,
    SteadyMillis,
    TopicName,
)
from pipeline.lanes.expiring import Cause, ExpiringRecords, Use
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.names import heartbeats_topic
from pipeline.planner.failures import Replicas
from pipeline.priority import Priority
from tests.unit.catalog.support import (
    LIFE,
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOTHING_READ,
    SPEED,
    TOLLS,
    node,
)
from tests.unit.deploy.twins import NOW, TwinClock, World, write_project
from tests.unit.kafka import create

IN, OUT = TopicName("car-sightings"), TopicName("out")


class Beating(TwinClock):
    """While it sleeps the node sends a heartbeat, by a clock of its own."""

    def __init__(self, world: World, topic: TopicName, ahead_ms: int) -> None:
        super().__init__()
        self._world, self._topic, self._ahead_ms = world, topic, ahead_ms

    def sleep(self, seconds: float) -> None:
        """Append it at the time of the broker, which is that of this clock."""
        super().sleep(seconds)
        self._world.clock.passed_s = self.passed_s
        at_ms, one = Millis(self.now_ms() + self._ahead_ms), node()
        beat = Heartbeat(one.node, one.started_at_ms, 1, SteadyMillis(0), 0, wall_ms=at_ms)
        self._world.kafka.append(self._topic, None, encode(beat))


def test_clocks_are_compared_by_heartbeats_that_come() -> None:
    """An old one, such as of a broker that has none new, says nothing."""
    world, us, one = World.new(), ParticipantId("local"), node()
    topic, clock = heartbeats_topic(us), Beating(world, heartbeats_topic(us), 60_000)
    world.catalog.nodes.register(one)
    assert clocks_of(world.catalog, us, world.kafka, world.log, clock) == ()
    world.kafka.create_topics((topic_spec(us),))
    old = Heartbeat(one.node, one.started_at_ms, 1, SteadyMillis(0), 0, wall_ms=Millis(1))
    world.kafka.append(topic, None, encode(old))
    assert clocks_of(world.catalog, us, world.kafka, world.log, TwinClock()) == ()
    found = clocks_of(world.catalog, us, world.kafka, world.log, clock)
    assert found == (ClockOffset(one.node, 60_000, 61_000), ClockOffset(None, -500, 0))


def test_clocks_are_not_compared_with_heartbeats_that_their_senders_stamp() -> None:
    """An existing topic is used as it is."""
    world, us = World.new(), ParticipantId("local")
    world.catalog.nodes.register(node())
    create(world.kafka, heartbeats_topic(us))
    clock = Beating(world, heartbeats_topic(us), 60_000)
    assert clocks_of(world.catalog, us, world.kafka, world.log, clock) == ()


def test_steps_that_take_too_long_are_found_by_heartbeats() -> None:
    """By network and fragment."""
    world, us, one = World.new(), ParticipantId("local"), node()
    world.catalog.nodes.register(one)
    create(world.kafka, heartbeats_topic(us))
    steps = (StepAge("cars.moving", "batch", 90_000), StepAge("cars.stopped", "batch", 900))
    beat = Heartbeat(one.node, one.started_at_ms, 1, SteadyMillis(0), 0, False, steps)
    world.kafka.append(heartbeats_topic(us), None, encode(beat))
    cars = NetworkId(us, NetworkName("cars"))
    found = overdue_of(world.catalog, us, world.log)
    assert found == {cars: {FragmentName("moving"): steps[0]}}


def test_steps_that_may_not_be_read_are_not_wrong() -> None:
    """Only the nodes have to read heartbeats."""

    class Closed(MemoryKafka):
        def reader(
            self,
            timeout_s: float,
            *,
            isolation: Isolation = Isolation.COMMITTED,
            fetch_wait_ms: int = FETCH_WAIT_MS,
        ) -> MemoryReader:
            """Refuses."""
            del timeout_s, isolation, fetch_wait_ms
            raise NotAllowedError("not for this user")

    world = World.new()
    world.catalog.nodes.register(node())
    log = LogReader(Closed(world.clock), 1.0)
    assert overdue_of(world.catalog, ParticipantId("local"), log) == {}


def test_expiring_records_are_reported_or_found_in_kafka(tmp_path: Path) -> None:
    """By the node of a fragment; a fragment that never ran needs nothing."""
    world = World.new()
    document = read_document(write_project(tmp_path), lambda _: None)
    deploy(compare(document, ParticipantId("local"), world.servers), world.servers, lambda _: None)
    cars = NetworkId(ParticipantId("local"), NetworkName("cars"))
    world.catalog.nodes.register(node())
    for name, use in (("moving", Use.UNREAD), ("stopped", None)):
        fragment = FragmentName(name)
        epoch = world.catalog.owners.claim(cars, fragment, node(), NOW).epoch
        removed = () if use is None else (ExpiringRecords(IN, (0,), use, Cause.REMOVED),)
        status = replace(NOTHING_READ, network=cars, fragment=fragment, epoch=epoch)
        world.catalog.statuses.report(replace(status, expiring=removed))
    search = Search(world.kafka, world.log, world.clock, 3.0)
    found = expiring_facts(world.catalog, (cars,), search)
    ((message, hint),) = found[cars][FragmentName("moving")]
    assert message == "unread records were removed from topic car-sightings, partition 0"
    assert "--state moving=empty" in hint
    assert found[cars][FragmentName("stopped")] == ()
    world.store.expire()
    assert expiring_facts(world.catalog, (cars,), search) == {
        cars: {FragmentName("moving"): (), FragmentName("stopped"): ()}
    }


def test_secondaries_are_those_of_the_nodes_that_are_up() -> None:
    """One of two is there, and its follower is level with the owner."""
    owner, other = node(NODE1), node(NODE2)
    record = FragmentRecord(
        TOLLS, MOVING, NetworkVersion(1), DesiredState.RUNNING, "digest", (), None, (), None,
        active_standbys=2,
    )  # fmt: skip
    paused = replace(record, fragment=SPEED, desired=DesiredState.PAUSED)
    network = NetworkRecord(TOLLS, NetworkVersion(1), LIFE, (), ())
    owned = OwnerRecord(NODE1, ME, Epoch(1), NOW, NOW)
    fragments = (Deployed(network, record, owned), Deployed(network, paused))
    found = CatalogSnapshot((owner, other), fragments)
    moving = FragmentId(TOLLS, MOVING)
    building = ObservedSecondaries(has_state=True, wanted=2, there=1, level=0)
    assert secondaries_of(found) == {moving: building}
    level = Standby(TOLLS, MOVING, FollowerPhase.LEVEL, "", NOW)
    found = replace(found, standbys={NODE2: (level,)})
    assert secondaries_of(found) == {moving: replace(building, level=1)}


def test_queued_fragments_have_the_nodes_that_are_full() -> None:
    """Neither a drained node nor one with other labels counts; what runs is not queued."""
    full = replace(node(NODE1), most_fragments=1)
    record = FragmentRecord(
        TOLLS, MOVING, NetworkVersion(1), DesiredState.RUNNING, "digest", (), None, (), None
    )
    network = NetworkRecord(TOLLS, NetworkVersion(1), LIFE, (), ())
    runs = Deployed(network, record, OwnerRecord(NODE1, ME, Epoch(1), NOW, NOW))
    waits = Deployed(network, replace(record, fragment=SPEED))
    found = CatalogSnapshot((full, node(NODE2)), (runs, waits), frozenset({NODE2}))
    queue = ObservedQueue(Priority.NORMAL, ((NODE1, 1),))
    assert queued_of(found) == {FragmentId(TOLLS, SPEED): queue}
    assert queued_of(replace(found, drained=frozenset())) == {}


def test_the_replication_of_topics_that_exist() -> None:
    """With the setting in force."""
    kafka = MemoryKafka(TwinClock())
    settings = (("min.insync.replicas", "2"),)
    kafka.create_topics((NewTopicSpec(IN, 1, 3, settings), NewTopicSpec(OUT, 1, 1)))
    assert replicas(kafka, (IN, OUT, TopicName("missing"))) == (
        Replicas(IN, 3, 2, written=True),
        Replicas(OUT, 1, 1, written=True),
    )


def test_a_rebuild_of_a_running_fragment_is_examined_too(tmp_path: Path) -> None:
    """With what to do for one that runs."""
    world = World.new()
    document = read_document(write_project(tmp_path), lambda _: None)
    deploy(compare(document, ParticipantId("local"), world.servers), world.servers, lambda _: None)
    cars, moving = NetworkId(ParticipantId("local"), NetworkName("cars")), FragmentName("moving")
    world.catalog.nodes.register(node())
    epoch = world.catalog.owners.claim(cars, moving, node(), NOW).epoch
    status = replace(NOTHING_READ, network=cars, fragment=moving, epoch=epoch)
    world.catalog.statuses.report(status)

    class Found(Search):
        def of_running(
            self, fragments: Sequence[FragmentRecord]
        ) -> Mapping[FragmentId, tuple[ExpiringRecords, ...]]:
            """Records of each."""
            old = ExpiringRecords(IN, (0,), Use.REBUILD, Cause.AGE)
            return {FragmentId(one.network, one.fragment): (old,) for one in fragments}

    search = Found(world.kafka, world.log, world.clock, 3.0)
    found = expiring_facts(world.catalog, (cars,), search)[cars]
    ((text, hint),) = found[moving]
    assert text.startswith("records that a rebuild of its state would read")
    assert hint.startswith("let its event time go on")
    assert found[FragmentName("stopped")] == ()
