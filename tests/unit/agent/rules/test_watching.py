"""Topics of Kafka that a node watches."""

from dataclasses import replace

from pipeline.agent.decide import decide
from pipeline.agent.effects import WatchTopics
from pipeline.agent.events import Event, PlanMade
from pipeline.agent.now import Now
from pipeline.agent.state import NodeState, Shared
from pipeline.boundaries.lane_time import Writer, writer_of
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import (
    FragmentName,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    SteadyMillis,
    TopicName,
)
from pipeline.planner.planner import plan
from tests.unit.agent.support import read
from tests.unit.planner.networks import OWNER, aggregated, external, network

COUNTS = TopicName("local.net.counts")
WRITER = "local.net.counts"
_SIGHTINGS = external("sightings")
_COUNTS = aggregated("counts", _SIGHTINGS, {}, {"n": ("count({})", "`at`")})
_SUMS = aggregated("sums", _COUNTS, {}, {"n": ("sum({})", "`n`")})
PLAN = plan(network((_SIGHTINGS,), (_COUNTS, _SUMS)), OWNER)


def _sums(topic_id: str) -> Deployed:
    """The fragment that reads the other one's stream, from a topic with this id."""
    one, name = NetworkVersion(1), NetworkId(ParticipantId("local"), NetworkName("net"))
    topics, running = ((COUNTS, topic_id),), DesiredState.RUNNING
    record = FragmentRecord(
        name, FragmentName("sums"), one, running, "digest", topics, None, (), None
    )
    return Deployed(NetworkRecord(name, one, NetworkLife("life"), (), ()), record)


class _Node:
    """An agent and its watch requests."""

    def __init__(self) -> None:
        self.state = NodeState(Shared(NodeId("node1"), OWNER, Millis(0)))
        self.writers: set[Writer] = set()
        """The writers whose boundaries are read, by the last watch request."""

    def receive(self, event: Event) -> list[WatchTopics]:
        """Feed an event; the resulting watch request."""
        self.state, effects = decide(self.state, event, Now(Millis(0), SteadyMillis(0)))
        watched = [effect for effect in effects if isinstance(effect, WatchTopics)]
        for one in watched:
            self.writers = {writer_of(lane_input) for lane_input in one.derived}
        return watched

    def assign(self, *fragments: Deployed) -> list[WatchTopics]:
        """Feed the catalog and the plans."""
        watched = self.receive(read(*fragments))
        for one in fragments:
            watched += self.receive(PlanMade(one.version, PLAN))
        return watched


def test_the_inputs_of_planned_fragments_are_watched() -> None:
    """One request for each change; an unchanged catalog causes none."""
    node = _Node()
    (watched,) = node.assign(_sums("counts-1"))
    assert watched.topics == {COUNTS}
    assert {(one.topic, one.topic_id) for one in watched.derived} == {(COUNTS, "counts-1")}
    assert node.writers == {("counts-1", WRITER)}
    assert node.assign(_sums("counts-1")) == []


def test_a_recreated_topic_changes_whose_boundaries_count() -> None:
    """One request names its writer; those of the old topic are no longer read."""
    node = _Node()
    node.assign(_sums("counts-1"))
    node.assign(_sums("counts-2"))
    assert node.writers == {("counts-2", WRITER)}
    assert node.assign(_sums("counts-2")) == []


def test_a_node_without_lanes_watches_nothing() -> None:
    """And removes its earlier watches."""
    node = _Node()
    node.assign(_sums("counts-1"))
    assert node.assign() == [WatchTopics(frozenset(), frozenset())]
    assert node.writers == set()


def test_boundaries_stay_watched_while_a_new_version_is_planned() -> None:
    """So they are kept. A writer that is quiet publishes its last boundary once only."""
    node, first = _Node(), _sums("counts-1")
    node.assign(first)
    second = replace(first, record=replace(first.record, version=NetworkVersion(2)))
    assert node.receive(read(second)) == []
    assert node.receive(PlanMade(second.version, PLAN)) == []
    assert node.writers == {("counts-1", WRITER)}
    assert node.assign() == [WatchTopics(frozenset(), frozenset())]


def test_another_life_of_the_network_changes_whose_boundaries_count() -> None:
    """Also while another network is being planned, which keeps what was watched before."""
    node, first = _Node(), _sums("counts-1")
    node.assign(first)
    second = replace(first, network=replace(first.network, life=NetworkLife("second")))
    counts = replace(second.record, fragment=FragmentName("counts"), version=NetworkVersion(2))
    other = replace(second, record=counts)
    node.receive(read(second, other))
    (watched,) = node.receive(PlanMade(second.version, PLAN))
    assert {one.life for one in watched.derived} == {"second"}


def test_a_paused_fragment_without_a_plan_keeps_nothing_watched() -> None:
    """Its version is planned when it is resumed."""
    node, first = _Node(), _sums("counts-1")
    paused = replace(
        first,
        record=replace(
            first.record,
            fragment=FragmentName("counts"),
            version=NetworkVersion(9),
            desired=DesiredState.PAUSED,
        ),
    )
    node.assign(first)
    assert node.receive(read(paused)) == [WatchTopics(frozenset(), frozenset())]
    assert node.writers == set()


def test_an_unplanned_fragment_does_not_affect_other_watches() -> None:
    """Each version is planned separately."""
    node, good = _Node(), _sums("counts-1")
    odd = replace(good, record=replace(good.record, version=NetworkVersion(9)))
    other = replace(odd, record=replace(odd.record, fragment=FragmentName("counts")))
    node.receive(read(good, other))
    (watched,) = node.receive(PlanMade(good.version, PLAN))
    assert watched.topics == {COUNTS}
