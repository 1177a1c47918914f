"""What a node watches of Kafka."""

from dataclasses import replace

from pipeline.agent.decide import decide
from pipeline.agent.effects import WatchTopics
from pipeline.agent.events import BoundaryRead, Event, PlanMade
from pipeline.agent.now import Now
from pipeline.agent.state import NodeState, Shared
from pipeline.boundaries.lane_time import Writer
from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import (
    Epoch,
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
    """The fragment that reads the other one's stream, over a topic of this id."""
    one, name = NetworkVersion(1), NetworkId(ParticipantId("local"), NetworkName("net"))
    topics, running = ((COUNTS, topic_id),), DesiredState.RUNNING
    record = FragmentRecord(
        name, FragmentName("sums"), one, running, "digest", topics, None, (), None
    )
    return Deployed(NetworkRecord(name, one, NetworkLife("life"), (), ()), record)


class _Node:
    """An agent, and what it watches."""

    def __init__(self) -> None:
        self.state = NodeState(Shared(NodeId("node1"), OWNER, Millis(0)))

    def hear(self, event: Event) -> list[WatchTopics]:
        """Tell it something; what it watches by that."""
        self.state, effects = decide(self.state, event, Now(Millis(0), SteadyMillis(0)))
        return [effect for effect in effects if isinstance(effect, WatchTopics)]

    def assign(self, *fragments: Deployed) -> list[WatchTopics]:
        """The catalog is read, and the plans are made."""
        watched = self.hear(read(*fragments))
        for one in fragments:
            watched += self.hear(PlanMade(one.version, PLAN))
        return watched

    @property
    def writers(self) -> set[Writer]:
        """Whose boundaries it keeps."""
        return set(self.state.shared.writers)


def test_what_planned_fragments_read_is_watched() -> None:
    """Once for each change; a catalog that is read again changes nothing."""
    node = _Node()
    (watched,) = node.assign(_sums("counts-1"))
    assert watched.topics == {COUNTS}
    assert {(one.topic, one.topic_id) for one in watched.derived} == {(COUNTS, "counts-1")}
    assert node.writers == {("counts-1", WRITER)}
    assert node.assign(_sums("counts-1")) == []


def test_a_topic_that_is_created_again_changes_whose_boundaries_count() -> None:
    """What was read of the old one is forgotten, and what is still read of it is ignored."""
    node = _Node()
    node.assign(_sums("counts-1"))
    old = BoundaryRead(next(iter(node.writers)), Epoch(1), Millis(5), {})
    node.hear(old)
    node.assign(_sums("counts-2"))
    assert node.writers == {("counts-2", WRITER)}
    node.hear(old)
    assert node.writers == {("counts-2", WRITER)}


def test_a_node_that_runs_nothing_watches_nothing() -> None:
    """And keeps nothing of what it has watched."""
    node = _Node()
    node.assign(_sums("counts-1"))
    assert node.assign() == [WatchTopics(frozenset(), frozenset())]
    assert node.writers == set()


def test_boundaries_are_kept_while_a_new_version_is_planned() -> None:
    """A writer that is quiet publishes its last boundary once only."""
    node, first = _Node(), _sums("counts-1")
    node.assign(first)
    node.hear(BoundaryRead(next(iter(node.writers)), Epoch(1), Millis(5), {}))
    before = node.state.shared.writers
    second = replace(first, record=replace(first.record, version=NetworkVersion(2)))
    assert node.hear(read(second)) == []
    assert node.hear(PlanMade(second.version, PLAN)) == []
    assert node.state.shared.writers == before
    assert node.assign() == [WatchTopics(frozenset(), frozenset())]


def test_a_fragment_that_is_not_planned_hides_nothing_of_the_others() -> None:
    """Each version is planned for itself."""
    node, good = _Node(), _sums("counts-1")
    odd = replace(good, record=replace(good.record, version=NetworkVersion(9)))
    other = replace(odd, record=replace(odd.record, fragment=FragmentName("counts")))
    node.hear(read(good, other))
    (watched,) = node.hear(PlanMade(good.version, PLAN))
    assert watched.topics == {COUNTS}
