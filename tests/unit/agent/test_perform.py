import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

import pytest

from brokers.memory_kafka.writers import MemoryProducer
from brokers.records import KafkaRecord
from pipeline.agent.background import Job
from pipeline.agent.effects import (
    FindExpiring,
    MakePlan,
    NoteRetention,
    PublishStatus,
    Rehearse,
    ReleaseFragment,
    SendActivity,
    StartLane,
    StopLane,
    WatchTopics,
)
from pipeline.agent.events import Event, ExpiringFound, PlanFailed, PlanMade
from pipeline.agent.perform import NodeContext, Performer, Workers
from pipeline.agent.watched import Watched
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import LaneProfile
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    LaneState,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
)
from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.clock import Deadline
from pipeline.errors import (
    BrokenInvariantError,
    EnvironmentProblem,
    FencedError,
    NewerFormatError,
    NotAllowedError,
    RefusedError,
    RetryError,
    UnavailableError,
)
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentId,
    FragmentName,
    Incarnation,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    Offset,
    ParticipantId,
    RunNumber,
    TopicId,
    TopicName,
    stable_lane,
)
from pipeline.lanes.events import LaneStopped
from pipeline.lanes.expiring import Cause, ExpiringRecords, LogNeeds, Use
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers import codec
from pipeline.markers.signals import ActivityRecord, activity_key
from pipeline.names import FragmentNames, Znodes
from pipeline.network.boxes.shape import Stateless
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import OnChange
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_planner import LanePlanner
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.system_clock import SystemClock
from tests.conftest import WaitFor
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.agent.support import LEFT, fresh_marker
from tests.unit.catalog.support import NOTHING_READ
from tests.unit.kafka import records, with_topics
from tests.unit.planner.networks import OWNER, external, filtered, network

NETWORK = NetworkId(ParticipantId("local"), NetworkName("net"))
MOVING = FragmentId(NETWORK, FragmentName("moving"))
LANE, RUN = stable_lane(MOVING), RunNumber(3)
VERSION = NetworkVersion(1)
LIFE = NetworkLife("one")
NODE = NodeRecord(NodeId("node1"), OWNER, "host", 1, Millis(4_000), "0", reads=1)
SIGHTINGS = external("sightings")
PLAN = plan(network((SIGHTINGS,), (filtered("moving", SIGHTINGS, "`at` > 0"),)), OWNER)
FRAGMENT = FragmentRecord(
    NETWORK,
    MOVING.fragment,
    VERSION,
    DesiredState.RUNNING,
    fragment_digest(PLAN.fragments[0]),
    ((TopicName("local.net.moving"), "id"),),
    (OnChange.EMPTY, Incarnation("1-5")),
    begins=(),
    succeeds=None,
)
DEPLOYED = Deployed(NetworkRecord(NETWORK, VERSION, LIFE, (), ()), FRAGMENT)


@dataclass
class Lane:
    """A lane that runs until it is stopped, or raises an error of the test: at once or later."""

    settings: LaneSettings
    raises: Exception | None = None
    raises_then: Exception | None = None
    stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Wait for the stop."""
        if self.raises is not None:
            raise self.raises
        assert self.stopped.wait(10)
        if self.raises_then is not None:
            raise self.raises_then

    def request_stop(self) -> None:
        """End the wait."""
        self.stopped.set()


class Signals(MemoryProducer):
    """A producer of signals over topics in memory."""

    def __init__(self) -> None:
        topics = (TopicName("local.net.moving.boundaries"),)
        self.kafka = with_topics(topics, partitions=2)
        super().__init__(self.kafka)
        self.closed = False

    @property
    def sent(self) -> list[KafkaRecord]:
        """What was sent."""
        names = self.kafka.topic_names()
        found = [record for name in names for record in records(self.kafka, name)]
        assert all(record.partition == 0 for record in found)
        return found

    def close(self) -> None:
        """Note that it was closed."""
        self.closed = True


class Immediate:
    """A worker that executes each job in `put`."""

    def __init__(self) -> None:
        self.ended = False

    def put(self, key: Hashable, job: Job) -> None:
        """Execute the job."""
        del key
        job()

    def end(self, within_s: float) -> bool:
        """No job is left."""
        assert within_s >= 0
        self.ended = True
        return True


@dataclass
class Node:
    """A performer with its collaborators in memory."""

    performer: Performer
    lanes: list[Lane]
    events: list[Event]
    signals: Signals
    watched: Watched
    news: LaneNews
    catalog: Catalog
    newer: list[Exception]
    """Errors of reading the fragments' markers."""
    planned: list[Plan | Exception]
    """Plan of the deployed version, or the error of planning it."""
    written: list[Epoch]
    """The epoch of the last commit marker."""
    removed: list[tuple[ExpiringRecords, ...] | Exception]
    """What retention removes, or the error of finding it."""

    def start(self) -> None:
        """Request a start of the fragment's lane."""
        self.performer.perform(StartLane(LANE, RUN, DEPLOYED, PLAN.fragments[0]))

    def stop(self) -> None:
        """Stop everything."""
        self.performer.stop_all(Deadline.after(SystemClock(), 10, "stopping"))


@pytest.fixture
def make_node() -> Callable[[Exception | None], Node]:
    """Makes nodes over an in-memory catalog with one deployed fragment."""

    def make(raises: Exception | None) -> Node:
        catalog = Catalog(MemoryStore(MemoryTree()), Znodes(""))
        catalog.format.ensure(OWNER)
        version = NetworkVersionRecord(NETWORK, VERSION, "", (), "digest", Millis(0), ())
        catalog.networks.deploy(DEPLOYED.network, version, (FRAGMENT,), None)
        planned: list[Plan | Exception] = [PLAN]
        lanes: list[Lane] = []
        events: list[Event] = []
        newer: list[Exception] = []
        written = [NO_EPOCH]
        removed: list[tuple[ExpiringRecords, ...] | Exception] = [()]

        def make_plan(version: VersionId) -> Plan:
            assert version == DEPLOYED.version
            if isinstance(planned[0], Exception):
                raise planned[0]
            return planned[0]

        def admit(names: FragmentNames) -> Epoch:
            assert names.fragment == MOVING.fragment
            if newer:
                raise newer[0]
            return written[0]

        def expiring() -> tuple[ExpiringRecords, ...]:
            if isinstance(removed[0], Exception):
                raise removed[0]
            return removed[0]

        def lane(settings: LaneSettings) -> Lane:
            lanes.append(Lane(settings, raises))
            return lanes[-1]

        context = NodeContext(
            node=NODE,
            catalog=catalog,
            make_plan=make_plan,
            find_expiring=lambda _needs, _now_ms: expiring(),
            admit=admit,
            make_lane=lane,
            signals=Signals(),
            watched=Watched(),
            news=LaneNews(),
            workers=Workers(Immediate(), Immediate(), Immediate(), Immediate()),
            clock=SystemClock(),
        )
        performer = Performer(context, events.append)
        signals, watched, news = context.signals, context.watched, context.news
        assert isinstance(signals, Signals)
        polled = signals, watched, news
        return Node(performer, lanes, events, *polled, catalog, newer, planned, written, removed)

    return make


def test_a_start_claims_the_fragment_and_runs_its_lane_until_it_is_stopped(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """The lane gets its epoch, the topic ids and choice of the deploy; its end is one event."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    settings = node.lanes[0].settings
    assert (settings.life, settings.epoch, settings.topic_ids) == (
        LIFE,
        1,
        {"local.net.moving": "id"},
    )
    assert settings.choice == StateChoice(OnChange.EMPTY, Incarnation("1-5"))
    assert (settings.lane, settings.run) == (LANE, RUN)
    assert settings.letters_kept_ms() is None
    node.performer.perform(NoteRetention(LANE, 604_800_000))
    assert settings.letters_kept_ms() == 604_800_000
    assert not settings.ran_before
    settings.record_start()
    assert node.catalog.starts.recorded(NETWORK, MOVING.fragment)
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    assert (owner.node, owner.epoch) == ("node1", 1)
    node.performer.perform(StopLane(LANE))
    wait_for(lambda: node.events, "the end of the lane")
    assert node.events == [LaneStopped(LANE, RUN, Epoch(1), None, retry=True, fenced=False)]


def test_a_marker_of_a_newer_format_is_refused_before_the_claim(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """The owner is not fenced, no epoch is used, and there is no automatic retry."""
    node = make_node(None)
    node.newer.append(NewerFormatError("a newer Medusa wrote this commit marker"))
    node.start()
    wait_for(lambda: node.events, "the end of the lane")
    error = "a newer Medusa wrote this commit marker"
    assert node.events == [LaneStopped(LANE, RUN, Epoch(0), error, retry=False, fenced=False)]
    assert node.lanes == []
    assert node.catalog.owners.get(NETWORK, MOVING.fragment) is None


def test_a_plan_request_returns_the_plan_or_the_error(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """For the requested version; nothing is claimed."""
    node = make_node(None)
    node.performer.perform(MakePlan(DEPLOYED.version))
    error = RefusedError("there is no such kind of box")
    node.planned[0] = error
    node.performer.perform(MakePlan(DEPLOYED.version))
    assert node.events == [PlanMade(DEPLOYED.version, PLAN), PlanFailed(DEPLOYED.version, error)]
    assert node.catalog.owners.get(NETWORK, MOVING.fragment) is None


def test_a_planner_that_fails_unexpectedly_is_a_failure_too(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Else the version would be pending for ever, and its fragments starting."""
    node = make_node(None)
    node.planned[0] = KeyError("box")
    node.performer.perform(MakePlan(DEPLOYED.version))
    (failed,) = node.events
    assert isinstance(failed, PlanFailed)
    assert failed.version == DEPLOYED.version
    assert "planning failed with KeyError: 'box'" in str(failed.error)


def test_watch_requests_reach_the_polls(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Topics, inputs, and fragments of other nodes."""
    node = make_node(None)
    topics = frozenset({TopicName("sightings-topic")})
    node.performer.perform(WatchTopics(topics, frozenset({LEFT})))
    node.performer.perform(Rehearse(((DEPLOYED, PLAN.fragments[0]),)))
    assert (node.watched.topics, node.watched.derived) == (topics, frozenset({LEFT}))
    assert node.watched.elsewhere == ((DEPLOYED, PLAN.fragments[0]),)


def test_expiring_records_are_reported_and_logged_once(
    make_node: Callable[[Exception | None], Node], caplog: pytest.LogCaptureFixture
) -> None:
    """A Kafka that does not answer changes nothing; another kind of them is logged again."""
    node, effect = make_node(None), FindExpiring(LANE, LogNeeds({}))
    node.removed[0] = UnavailableError("no answer")
    node.performer.perform(effect)
    assert node.events == []
    unread = ExpiringRecords(TopicName("in"), (0,), Use.UNREAD, Cause.REMOVED)
    crowded = replace(unread, partitions=(1,), cause=Cause.SIZE)
    for found in ((unread,), (unread,), (replace(unread, partitions=(0, 1)),), (unread, crowded)):
        node.removed[0] = found
        node.performer.perform(effect)
        assert node.events.pop() == ExpiringFound(LANE, found)
    logged = [record.message for record in caplog.records]
    assert logged[0] == "unread records were removed from topic in, partition 0"
    assert [text.partition(" of ")[0] for text in logged[1:]] == ["more than half"]


def test_boundaries_are_kept_for_lanes_from_the_watch_request_on(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """The poll reads each topic from its beginning after the request: nothing is missed."""
    node = make_node(None)

    def known(boundary_ms: int) -> Millis | None:
        boundary = PendingBoundary(Millis(boundary_ms), {0: Offset(0), 1: Offset(0)})
        node.news.boundary_read(writer_of(LEFT), Epoch(1), boundary)
        planner = LanePlanner(LaneProfile((LEFT,), Stateless()), SystemClock(), lambda _: None)
        node.news.join(planner, frozenset({LEFT.topic}), fresh_marker(LEFT))
        return planner.promised(LEFT.stream)

    assert known(5) is None
    node.performer.perform(WatchTopics(frozenset({LEFT.topic}), frozenset({LEFT})))
    assert known(6) == 6


def test_the_epoch_is_above_that_of_the_last_marker(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """A ZooKeeper restored from an older state contains a lower counter."""
    node = make_node(None)
    node.written[0] = Epoch(41)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    assert node.lanes[0].settings.epoch == 42
    node.stop()


@pytest.mark.parametrize(
    ("error", "retry", "fenced", "external"),
    [
        (RetryError("later"), True, False, False),
        (FencedError("another"), True, True, False),
        (RefusedError("no"), False, False, False),
        (BrokenInvariantError("bug"), False, False, False),
        (ValueError("unforeseen"), True, False, False),
        (UnavailableError("no answer"), True, False, True),
        (EnvironmentProblem("the disk is full"), True, False, True),
        (NotAllowedError("no right"), True, False, True),
    ],
)
def test_the_kind_of_error_decides_on_a_retry(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    error: Exception,
    *,
    retry: bool,
    fenced: bool,
    external: bool,
) -> None:
    """Not its text; errors of external systems are always retried."""
    node = make_node(error)
    node.start()
    wait_for(lambda: node.events, "the end of the lane")
    (event,) = node.events
    assert isinstance(event, LaneStopped)
    assert (event.retry, event.fenced, event.external) == (retry, fenced, external)
    assert event.error is not None
    assert str(error) in event.error


@pytest.mark.parametrize(
    ("owner", "said"),
    [
        ("node2", "fenced with epoch 1; node node2 owns it with epoch 2 since 1970-01-01T00:00:05"),
        ("node1", "this node owns it with epoch 2: started again after a while"),
        ("", "this node owns it with epoch 1: started again after a while"),
    ],
)
def test_a_fenced_lane_logs_the_owner_of_the_fragment(
    make_node: Callable[[Exception | None], Node],
    wait_for: WaitFor,
    caplog: pytest.LogCaptureFixture,
    owner: str,
    said: str,
) -> None:
    """With the owner's epoch and the reaction of this node."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    if owner:
        by = replace(NODE, node=NodeId(owner))
        node.catalog.owners.claim(NETWORK, MOVING.fragment, by, Millis(5_000))
    node.lanes[0].raises_then = FencedError("another instance has taken over")
    node.lanes[0].request_stop()
    wait_for(lambda: node.events, "the end of the lane")
    assert said in caplog.text
    assert "stopped: another instance has taken over" in caplog.text


def test_activity_goes_to_the_topic_of_boundaries(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """Under a separate key, so that it replaces no boundary."""
    node = make_node(None)
    output, writer = TopicName("local.net.moving"), DEPLOYED.names.writer
    effect = SendActivity(LANE, output, TopicId("id"), writer, Epoch(3), idle=True)
    node.performer.perform(effect)
    (sent,) = node.signals.sent
    assert (sent.topic, sent.key) == (
        "local.net.moving.boundaries",
        activity_key("local.net.moving"),
    )
    assert sent.value is not None
    expected = ActivityRecord(TopicId("id"), "local.net.moving", Epoch(3), idle=True)
    assert codec.decode_activity(sent.value, "") == expected


def test_stopping_everything_waits_for_the_lanes(
    make_node: Callable[[Exception | None], Node], wait_for: WaitFor
) -> None:
    """After it no lane runs, and the producer of signals is closed."""
    node = make_node(None)
    node.start()
    wait_for(lambda: node.lanes, "the lane is made")
    node.stop()
    assert node.lanes[0].stopped.is_set()
    assert node.events
    assert node.signals.closed


def test_unread_counts_are_not_reported_as_zero(
    make_node: Callable[[Exception | None], Node],
) -> None:
    """A node that starts must not report zeros before it has read the marker."""
    node = make_node(None)
    nothing = replace(NOTHING_READ, network=NETWORK, fragment=MOVING.fragment)
    node.catalog.statuses.report(replace(nothing, epoch=Epoch(2), records_in=9, records_out=8))
    new = replace(nothing, epoch=Epoch(3), state=LaneState.STARTING)
    node.performer.perform(PublishStatus(LANE, new, counted=False))
    found = node.catalog.statuses.get(NETWORK, MOVING.fragment)
    assert found is not None
    assert (found.state, found.records_in, found.records_out) == (LaneState.STARTING, 9, 8)


def test_a_release_removes_the_owner(make_node: Callable[[Exception | None], Node]) -> None:
    """Only the one that it names."""
    node = make_node(None)
    node.catalog.owners.claim(NETWORK, MOVING.fragment, NODE, Millis(0))
    owner = node.catalog.owners.get(NETWORK, MOVING.fragment)
    assert owner is not None
    for other in (replace(owner, epoch=Epoch(9)), owner):
        node.performer.perform(ReleaseFragment(MOVING, other))
        left = node.catalog.owners.get(NETWORK, MOVING.fragment)
        assert (left is None) == (other is owner)
