import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from brokers.memory_store import MemoryStore, MemoryTree
from pipeline.brain.events import (
    Event,
    PublishStatus,
    SendAdvance,
    StartLane,
    StopLane,
)
from pipeline.brain.perform import NodeContext, Performer
from pipeline.brain.plans import Plans
from pipeline.brain.state import Lane as LaneView
from pipeline.brain.state import NodeState
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    FragmentStatus,
    LaneState,
    NetworkRecord,
    NetworkVersionRecord,
)
from pipeline.clock import Deadline, SystemClock
from pipeline.errors import (
    BrokenInvariantError,
    FencedError,
    NewerFormatError,
    RefusedError,
    RetryError,
)
from pipeline.ids import (
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
    TopicName,
)
from pipeline.lanes import codec
from pipeline.lanes.events import FragmentId, LaneStopped
from pipeline.lanes.start import StateChoice
from pipeline.names import FragmentNames, Znodes
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import OnChange
from pipeline.spark.lane_settings import LaneSettings
from tests.conftest import WaitFor
from tests.unit.planner.networks import OWNER, external, filtered, network

NETWORK = NetworkName("net")
MOVING = FragmentId(NETWORK, FragmentName("moving"))
VERSION = NetworkVersion(1)
LIFE = Millis(4_000)
FRAGMENT = FragmentRecord(
    NETWORK,
    MOVING.fragment,
    VERSION,
    DesiredState.RUNNING,
    "digest",
    ((TopicName("t"), "id"),),
    (OnChange.EMPTY, Incarnation("1-5")),
)


@dataclass
class Lane:
    """A lane that runs until it is stopped, or raises what a test wants: at once or then."""

    settings: LaneSettings
    raises: Exception | None = None
    raises_then: Exception | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Wait to be stopped."""
        if self.raises is not None:
            raise self.raises
        assert self.stopped.wait(10)
        if self.raises_then is not None:
            raise self.raises_then

    def request_stop(self) -> None:
        """End the wait."""
        self.stopped.set()


@dataclass
class Advances:
    """A producer that keeps what was sent."""

    sent: list[tuple[TopicName, bytes | None]] = field(default_factory=list)
    closed: bool = False

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Keep a record."""
        assert (key, partition) == (None, 0)
        assert timestamp_ms is not None
        self.sent.append((topic, value))

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


@dataclass
class Node:
    """A performer with everything it touches."""

    performer: Performer
    lanes: list[Lane]
    told: list[Event]
    advances: Advances
    catalog: Catalog
    newer: list[Exception]
    """What is told of the fragments' markers."""


def _planned(record: NetworkVersionRecord, owner: ParticipantId) -> Plan:
    assert record.version == VERSION
    sightings = external("sightings")
    return plan(network((sightings,), (filtered("moving", sightings, "`at` > 0"),)), owner)


@pytest.fixture
def make_node() -> Callable[[Exception | None], Node]:
    """Makes nodes over an in-memory catalog with one deployed fragment."""

    def make(raises: Exception | None) -> Node:
        catalog = Catalog(MemoryStore(MemoryTree()), Znodes(""))
        catalog.ensure_format()
        owned = NetworkRecord(NETWORK, OWNER, VERSION)
        version = NetworkVersionRecord(NETWORK, VERSION, "", (), "digest", Millis(0))
        catalog.deploy(owned, version, (FRAGMENT,), None)
        plans = Plans(catalog.version, _planned)
        plans.assign(((owned, FRAGMENT),))
        lanes: list[Lane] = []
        told: list[Event] = []
        advances = Advances()

        newer: list[Exception] = []

        def admit(names: FragmentNames) -> None:
            assert names.fragment == MOVING.fragment
            if newer:
                raise newer[0]

        def lane(settings: LaneSettings) -> Lane:
            lanes.append(Lane(settings, raises))
            return lanes[-1]

        node, clock = NodeId("node1"), SystemClock()
        context = NodeContext(node, OWNER, LIFE, catalog, plans, admit, lane, advances, clock)
        return Node(Performer(context, told.append), lanes, told, advances, catalog, newer)

    return make


def test_a_start_claims_the_fragment_and_runs_its_lane_until_it_is_stopped(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """The lane gets its epoch, and topic ids and choice of the deploy; its end is told once."""
    node = make_node(None)
    state = NodeState(NodeId("node1"))
    node.performer.perform(StartLane(MOVING, VERSION), state)
    wait_for(lambda: node.lanes, "the lane is made")
    settings = node.lanes[0].settings
    assert (settings.epoch, settings.topic_ids) == (1, {"t": "id"})
    assert settings.choice == StateChoice(OnChange.EMPTY, Incarnation("1-5"))
    assert settings.letters_kept_ms() == 604_800_000
    assert not settings.ran_before
    settings.record_start()
    assert node.catalog.starts.recorded(NETWORK, MOVING.fragment)
    owner = node.catalog.owner(NETWORK, MOVING.fragment)
    assert owner is not None
    assert (owner.node, owner.epoch) == ("node1", 1)
    node.performer.perform(StopLane(MOVING), state)
    wait_for(lambda: node.told, "the end is told")
    assert node.told == [LaneStopped(MOVING, Epoch(1), None, retry=True, fenced=False)]


def test_what_a_newer_version_wrote_is_refused_before_the_fragment_is_claimed(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """Its owner is not fenced, no epoch is taken, and it is not tried again unasked."""
    node = make_node(None)
    node.newer.append(NewerFormatError("a newer Medusa wrote this commit marker"))
    node.performer.perform(StartLane(MOVING, VERSION), NodeState(NodeId("node1")))
    wait_for(lambda: node.told, "the end is told")
    error = "a newer Medusa wrote this commit marker"
    assert node.told == [LaneStopped(MOVING, Epoch(0), error, retry=False, fenced=False)]
    assert node.lanes == []
    assert node.catalog.owner(NETWORK, MOVING.fragment) is None


@pytest.mark.parametrize(
    ("error", "retry", "fenced"),
    [
        (RetryError("later"), True, False),
        (FencedError("another"), True, True),
        (RefusedError("no"), False, False),
        (BrokenInvariantError("bug"), False, False),
        (ValueError("unforeseen"), True, False),
    ],
)
def test_what_ends_a_lane_tells_whether_to_try_again(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    error: Exception,
    *,
    retry: bool,
    fenced: bool,
) -> None:
    """The kind of the error decides, not its words."""
    node = make_node(error)
    node.performer.perform(StartLane(MOVING, VERSION), NodeState(NodeId("node1")))
    wait_for(lambda: node.told, "the end is told")
    (told,) = node.told
    assert isinstance(told, LaneStopped)
    assert (told.retry, told.fenced) == (retry, fenced)
    assert told.error is not None
    assert str(error) in told.error


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("node2", "fenced with epoch 1; node node2 owns it with epoch 2 since 1970-01-01T00:00:05"),
        ("node1", "this node owns it with epoch 2: started again after a while"),
        ("", "this node owns it with epoch 1: started again after a while"),
    ],
)
def test_a_fenced_lane_says_in_the_log_whose_the_fragment_is(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    caplog: pytest.LogCaptureFixture,
    owner: str,
    said: str,
) -> None:
    """Who owns it, with which epoch, and what this node does about it."""
    node = make_node(None)
    node.performer.perform(StartLane(MOVING, VERSION), NodeState(NodeId("node1")))
    wait_for(lambda: node.lanes, "the lane is made")
    if owner:
        node.catalog.claim(NETWORK, MOVING.fragment, NodeId(owner), OWNER, Millis(5_000))
    node.lanes[0].raises_then = FencedError("another instance has taken over")
    node.lanes[0].request_stop()
    wait_for(lambda: node.told, "the end is told")
    assert said in caplog.text
    assert "stopped: another instance has taken over" in caplog.text


def test_an_advance_goes_to_the_fragments_own_topic(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """It names the incarnation that it is for."""
    node = make_node(None)
    effect = SendAdvance(MOVING, Incarnation("one"), Millis(5))
    node.performer.perform(effect, NodeState(NodeId("node1")))
    ((topic, value),) = node.advances.sent
    assert topic == "net.moving.advances"
    assert value is not None
    advance = codec.decode_advance(value, "")
    assert (advance.incarnation, advance.advance_ms) == ("one", 5)


def test_stopping_everything_waits_for_the_lanes(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """When it returns, no lane runs, and the producer of advances is closed."""
    node = make_node(None)
    node.performer.perform(StartLane(MOVING, VERSION), NodeState(NodeId("node1")))
    wait_for(lambda: node.lanes, "the lane is made")
    node.performer.stop_all(Deadline.after(SystemClock(), 10, "stopping"))
    assert node.lanes[0].stopped.is_set()
    assert node.told
    assert node.advances.closed


def test_counts_that_a_lane_does_not_know_yet_stay_as_they_were(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """A node that starts must not tell zeros until it has read the marker."""
    node = make_node(None)
    old = FragmentStatus(
        NETWORK, MOVING.fragment, NodeId("node1"), Epoch(2), LaneState.RUNNING, Millis(1), 9, 8
    )
    node.catalog.report(old)
    new = FragmentStatus(
        NETWORK, MOVING.fragment, NodeId("node1"), Epoch(3), LaneState.STARTING, Millis(2)
    )
    state = NodeState(NodeId("node1"), {MOVING: LaneView(MOVING, published=new)})
    node.performer.perform(PublishStatus(MOVING), state)
    found = node.catalog.status(NETWORK, MOVING.fragment)
    assert found is not None
    assert (found.state, found.records_in, found.records_out) == (LaneState.STARTING, 9, 8)
    assert found.life == LIFE
