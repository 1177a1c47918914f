import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest

from brokers.memory_store import MemoryStore, MemoryTree
from brokers.records import Ends
from pipeline.brain.events import (
    CatalogLost,
    CatalogRead,
    EndsRead,
    Event,
)
from pipeline.brain.plans import Plans
from pipeline.brain.polls import CatalogPoll, Ending, EndsPoll, EnginePoll, WarmUpPoll, start
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.formats import raise_format
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
)
from pipeline.clock import SystemClock
from pipeline.errors import (
    DocumentError,
    EnvironmentProblem,
    MedusaError,
    NewerFormatError,
    Problem,
    RefusedError,
    UnavailableError,
)
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    Offset,
    ParticipantId,
    TopicName,
)
from pipeline.lanes.events import FragmentId as Id
from pipeline.names import Znodes
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Fragment, Plan
from pipeline.planner.planner import plan
from tests.unit.planner.networks import OWNER, external, filtered, network

NETWORK = NetworkName("net")
MOVING = FragmentName("moving")
VERSION = NetworkVersion(1)
LIFE = NetworkLife("one")


def _node(name: str) -> NodeRecord:
    return NodeRecord(NodeId(name), ParticipantId("local"), "here", 1, Millis(0), "1")


@dataclass
class World:
    """One tree, the poll's session, and what was told."""

    tree: MemoryTree = field(default_factory=MemoryTree)
    told: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store = MemoryStore(self.tree)
        self.catalog = Catalog(self.store, Znodes(""))
        self.catalog.ensure_format()
        sightings = external("sightings")
        boxes = (filtered("moving", sightings, "`at` > 0"),)
        self.plan = plan(network((sightings,), boxes), OWNER)
        self.plans = Plans(self.catalog.version, self.replan)
        self.catalog.register_node(_node("here"))
        self.poll = CatalogPoll(
            self.catalog, self.plans, _node("here"), SystemClock(), self.told.append
        )

    def replan(self, record: NetworkVersionRecord, _: ParticipantId) -> Plan:
        """The plan of every version, unless this program does not understand its document."""
        if record.document:
            raise DocumentError((Problem(record.document),))
        return self.plan

    def deploy(
        self,
        *,
        name: NetworkName = NETWORK,
        life: NetworkLife = LIFE,
        owner: ParticipantId = OWNER,
        document: str = "",
    ) -> None:
        """Deploy one fragment."""
        version = NetworkVersionRecord(name, VERSION, document, (), "digest", Millis(0))
        digest = fragment_digest(self.plan.fragments[0])
        record = FragmentRecord(name, MOVING, VERSION, DesiredState.RUNNING, digest, ())
        deployed = NetworkRecord(name, owner, VERSION, life)
        self.catalog.deploy(deployed, version, (record,), None)

    def plan_all(self) -> None:
        """Plan the fragments of this node, as their lanes do."""
        for deployed in self.catalog.networks():
            one = self.plans.assigned(Id(deployed.network, MOVING))
            with suppress(RefusedError):
                self.plans.fragment(one)

    def desired(self) -> list[str]:
        """The fragments that the last catalog reading assigned to this node."""
        read = [event for event in self.told if isinstance(event, CatalogRead)]
        return [one.fragment.fragment for one in read[-1].desired]


def test_the_catalog_is_told_when_it_changes_and_not_before() -> None:
    """A look without a change costs one small read and tells nothing."""
    world = World()
    world.poll.look()
    world.poll.look()
    assert len(world.told) == 1
    world.deploy()
    world.poll.look()
    assert world.desired() == ["moving"]


def test_a_fragment_of_another_living_node_is_not_ours() -> None:
    """As soon as that node is gone, it is."""
    world = World()
    world.deploy()
    other = MemoryStore(world.tree)
    theirs = Catalog(other, Znodes(""))
    theirs.register_node(_node("there"))
    theirs.claim(NETWORK, MOVING, NodeId("there"), ParticipantId("local"), Millis(0))
    world.poll.look()
    assert world.desired() == []
    other.close()
    world.poll.look()
    assert world.desired() == ["moving"]


def test_a_fragment_of_another_participant_is_not_ours() -> None:
    """Nor is it rehearsed, whether a node of that participant is up or not."""
    world = World()
    world.deploy(owner=ParticipantId("others"))
    world.poll.look()
    assert world.desired() == []
    theirs = Catalog(MemoryStore(world.tree), Znodes(""))
    theirs.register_node(replace(_node("there"), participant=ParticipantId("others")))
    theirs.claim(NETWORK, MOVING, NodeId("there"), ParticipantId("others"), Millis(0))
    world.poll.look()
    assert world.desired() == []
    assert world.plans.elsewhere() == ()


def test_a_version_that_cannot_be_planned_keeps_nobody_from_reading_the_catalog() -> None:
    """All fragments are assigned, and the others are planned; its own say why they are not."""
    world = World()
    world.deploy(name=NetworkName("odd"), document="there is no such kind of box")
    world.deploy()
    world.poll.look()
    assert world.desired() == ["moving", "moving"]
    assert world.plans.fragment(world.plans.assigned(Id(NETWORK, MOVING))).name == MOVING
    with pytest.raises(RefusedError, match="there is no such kind of box"):
        world.plans.fragment(world.plans.assigned(Id(NetworkName("odd"), MOVING)))


def test_a_network_deployed_again_after_its_destruction_is_planned_again() -> None:
    """Versions count from 1 again, and say something else."""
    world = World()
    world.deploy()
    world.poll.look()
    before = world.plans.fragment(world.plans.assigned(Id(NETWORK, MOVING)))
    world.catalog.remove_network(NETWORK)
    sightings = external("sightings")
    world.plan = plan(network((sightings,), (filtered("moving", sightings, "`at` > 1"),)), OWNER)
    world.deploy(life=NetworkLife("two"))
    world.poll.look()
    after = world.plans.fragment(world.plans.assigned(Id(NETWORK, MOVING)))
    assert (before, after) == (before, world.plan.fragments[0])
    assert before != after


def test_a_session_in_doubt_is_told_once_and_read_anew_afterwards() -> None:
    """While it is in doubt nothing may be decided on what was read."""
    world = World()
    world.poll.look()
    world.store.suspend()
    world.poll.look()
    world.poll.look()
    world.store.resume()
    world.poll.look()
    assert [type(event) for event in world.told] == [CatalogRead, CatalogLost, CatalogRead]


def test_a_node_is_registered_again_when_its_session_was_lost() -> None:
    """Otherwise it would run on while everybody takes it for dead."""
    world = World()
    world.poll.look()
    world.store.expire()
    world.store.resume()
    assert world.catalog.nodes() == ()
    world.poll.look()
    assert [record.node for record in world.catalog.nodes()] == ["here"]


def test_a_catalog_that_was_raised_beyond_this_version_ends_the_node() -> None:
    """In words, without telling what is desired: it claims nothing any more."""
    world = World()
    world.poll.look()
    stop = threading.Event()
    ending = Ending(stop)
    world.store.expire()
    world.store.resume()
    raise_format(MemoryStore(world.tree), Znodes(""), newest=2)
    start(world.poll, "catalog", stop, ending).join(10)
    assert stop.is_set()
    with pytest.raises(NewerFormatError, match="format 2, this one reads up to 1"):
        ending.check()
    assert [type(event) for event in world.told] == [CatalogRead, CatalogLost]
    assert MemoryStore(world.tree).children(Znodes("").nodes()) == ()


def test_a_node_that_ends_for_no_reason_of_its_own_tells_none() -> None:
    """Being stopped is none; of several reasons the first counts."""
    stop = threading.Event()
    ending = Ending(stop)
    ending.check()
    assert not stop.is_set()
    ending.because(UnavailableError("first"))
    ending.because(UnavailableError("second"))
    with pytest.raises(UnavailableError, match="first"):
        ending.check()


@dataclass
class Kafka:
    """A cluster that answers, or does not."""

    up: bool = True

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """Every topic ends at 7, and an open transaction has written two records behind that."""
        if not self.up:
            raise UnavailableError("Kafka does not answer")
        there = tuple(topics)
        return {t: {0: Offset(7)} for t in there}, {t: {0: Offset(9)} for t in there}


def test_ends_of_an_unreachable_cluster_are_no_ends() -> None:
    """Nothing is told to be at its end when nobody could look.

    A version that cannot be planned hides the topics of no other one.
    """
    world = World()
    kafka = Kafka()
    poll = EndsPoll(kafka, world.plans, SystemClock(), world.told.append)
    poll.look()
    assert world.told == []
    world.deploy()
    world.deploy(name=NetworkName("odd"), document="there is no such kind of box")
    world.poll.look()
    world.plan_all()
    world.told.clear()
    poll.look()
    kafka.up = False
    poll.look()
    told = [(event.ends, event.written) for event in world.told if isinstance(event, EndsRead)]
    assert told == [({"sightings-topic": {0: 7}}, {"sightings-topic": {0: 9}}), ({}, {})]


def test_a_node_whose_engine_has_ended_is_told_to_end() -> None:
    """No lane could run in it again, so somebody has to start the node anew."""
    stop = threading.Event()
    troubles: list[MedusaError | None] = [EnvironmentProblem("the Java process has ended"), None]
    ending = Ending(stop)
    poll = EnginePoll(troubles.pop, ending)
    poll.look()
    assert not stop.is_set()
    poll.look()
    assert stop.is_set()
    with pytest.raises(EnvironmentProblem, match="Java process"):
        ending.check()


@dataclass
class Engine:
    """An engine that is warmed up: what it did, and whether topics have records."""

    done: list[str] = field(default_factory=list)
    records: bool = True
    over: bool = False

    def practise(self) -> None:
        """Made-up records are always there."""
        self.done.append("practised")

    def rehearse(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> bool:
        """Real ones may be missing."""
        assert topic_ids == {}
        self.done.append(fragment.name)
        return self.records


def _deployed_elsewhere(world: World) -> None:
    world.deploy()
    theirs = Catalog(MemoryStore(world.tree), Znodes(""))
    theirs.register_node(_node("there"))
    _claimed_elsewhere(world)


def _claimed_elsewhere(world: World, network: NetworkName = NETWORK) -> None:
    theirs = Catalog(MemoryStore(world.tree), Znodes(""))
    theirs.claim(network, MOVING, NodeId("there"), ParticipantId("local"), Millis(0))
    world.poll = CatalogPoll(
        world.catalog, world.plans, _node("here"), SystemClock(), world.told.append
    )
    world.poll.look()


def test_a_node_practises_once_when_it_knows_whether_it_has_something_to_do() -> None:
    """Not at the first look: the catalog has not been read by then."""
    engine = Engine()
    poll = WarmUpPoll(engine, World().plans)
    poll.look()
    assert engine.done == []
    poll.look()
    poll.look()
    assert engine.done == ["practised"]


def test_what_other_nodes_run_is_rehearsed_until_there_were_records() -> None:
    """A rehearsal without records has warmed nothing up; after one with some, no more."""
    world, engine = World(), Engine(records=False)
    _deployed_elsewhere(world)
    poll = WarmUpPoll(engine, world.plans)
    for _ in range(3):
        poll.look()
    assert engine.done == ["practised", "moving", "moving"]
    engine.records = True
    for _ in range(3):
        poll.look()
    assert engine.done == ["practised", "moving", "moving", "moving"]


def test_a_fragment_that_changed_is_rehearsed_again() -> None:
    """Its query is another one."""
    world, engine = World(), Engine()
    _deployed_elsewhere(world)
    poll = WarmUpPoll(engine, world.plans)
    for _ in range(2):
        poll.look()
    changed = NetworkVersionRecord(NETWORK, NetworkVersion(2), "", (), "other", Millis(0))
    digest = fragment_digest(world.plan.fragments[0])
    record = FragmentRecord(NETWORK, MOVING, NetworkVersion(2), DesiredState.RUNNING, digest, ())
    network = NetworkRecord(NETWORK, OWNER, NetworkVersion(2), LIFE)
    world.catalog.deploy(network, changed, (record,), VERSION)
    world.poll.look()
    poll.look()
    assert engine.done == ["practised", "moving", "moving"]


def test_a_fragment_of_a_network_deployed_again_is_rehearsed_again() -> None:
    """Its topics are other ones, whatever its plan is."""
    world, engine = World(), Engine()
    _deployed_elsewhere(world)
    poll = WarmUpPoll(engine, world.plans)
    for _ in range(2):
        poll.look()
    world.catalog.remove_network(NETWORK)
    world.deploy(life=NetworkLife("two"))
    _claimed_elsewhere(world)
    poll.look()
    assert engine.done == ["practised", "moving", "moving"]


def test_what_cannot_be_planned_is_not_rehearsed_and_hinders_no_other() -> None:
    """It is tried once, since its version stays what it is."""
    world, engine = World(), Engine()
    odd = NetworkName("an_odd_one")
    world.deploy(name=odd, document="there is no such kind of box")
    _deployed_elsewhere(world)
    _claimed_elsewhere(world, odd)
    poll = WarmUpPoll(engine, world.plans)
    for _ in range(3):
        poll.look()
    assert engine.done == ["practised", "moving"]


def test_a_node_with_real_work_is_warm() -> None:
    """Neither practice nor rehearsal, ever again."""
    world, engine = World(), Engine(over=True)
    _deployed_elsewhere(world)
    poll = WarmUpPoll(engine, world.plans)
    for _ in range(3):
        poll.look()
    assert engine.done == []
