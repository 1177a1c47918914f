"""A performer with its collaborators in memory, and one deployed fragment."""

import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from brokers.memory_kafka.writers import MemoryProducer
from brokers.records import KafkaRecord
from pipeline.agent.background import Job
from pipeline.agent.effects import (
    Following,
    StartLane,
)
from pipeline.agent.events import Event
from pipeline.agent.followers import Followers
from pipeline.agent.perform import NodeContext, Performer, Workers
from pipeline.agent.suspicions import Suspicions
from pipeline.agent.watched import Watched
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NetworkVersionRecord,
    NodeRecord,
)
from pipeline.catalog.snapshot import Deployed, VersionId
from pipeline.clock import Deadline
from pipeline.event_log.event import LoggedEvent
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
    ParticipantId,
    RunNumber,
    TopicName,
    stable_lane,
)
from pipeline.lanes.expiring import ExpiringRecords
from pipeline.lanes.follower_phases import FollowerCourse, FollowerEvent, Reached
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames, Znodes
from pipeline.planner.digest import fragment_digest
from pipeline.planner.plan import Plan
from pipeline.planner.planner import plan
from pipeline.planner.state import OnChange
from pipeline.spark.run.handover import Followed, FollowedState
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.system_clock import SystemClock
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.kafka import records, with_topics
from tests.unit.planner.networks import OWNER, external, filtered, network

T = TypeVar("T")
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
    followed: Followed | None = None
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


@dataclass
class Follower:
    """A follower that is level at once, and runs until it is stopped or raises an error."""

    settings: LaneSettings
    watch: Callable[[], None]
    course: FollowerCourse
    is_level: bool = True
    before: FollowedState | None = None
    raises: list[Exception] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    asked: list[tuple[LaneSettings, CommitMarker]] = field(default_factory=list)
    discarded: threading.Event = field(default_factory=threading.Event)
    runs: threading.Event = field(default_factory=threading.Event)
    problem: str = ""
    reached: Reached = field(default_factory=Reached)
    hangs: bool = False
    ends: threading.Event = field(default_factory=threading.Event)
    """Whether it was asked to end."""

    leaves_nothing: bool = False

    @property
    def followed(self) -> FollowedState | None:
        """The state that it leaves."""
        if self.leaves_nothing:
            return None
        return FollowedState(Path("followed"), Incarnation("1-5"), VERSION)

    def discard(self) -> None:
        """Its state is of no use any more."""
        self.discarded.set()

    def hand_over(self, settings: LaneSettings, last: CommitMarker, stop: threading.Event) -> None:
        """It has no query."""
        del stop
        self.asked.append((settings, last))

    def run(self) -> None:
        """Wait for the stop, or for an error of the test."""
        self.runs.set()
        self.course.move(FollowerEvent.BUILT)
        while not self.stopped.wait(0.01):
            if self.is_level and not self.course.is_level:
                self.course.move(FollowerEvent.REPEATED_ALL)
            self.watch()
            if self.raises:
                raise self.raises.pop()

    def request_stop(self) -> None:
        """End the wait, unless it hangs."""
        self.ends.set()
        if not self.hangs:
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
    followers: list[Follower]
    levels: list[bool]
    """Whether the next follower is level at once."""
    logged: list[LoggedEvent]
    """The entries of the event log."""

    def start(self) -> None:
        """Request a start of the fragment's lane."""
        self.performer.perform(StartLane(LANE, RUN, DEPLOYED, PLAN.fragments[0]))

    def stop(self) -> None:
        """Stop everything."""
        self.performer.stop_all(Deadline.after(SystemClock(), 10, "stopping"))


def _given(values: list[T | Exception]) -> T:
    """The first value of a test, or the error."""
    if isinstance(values[0], Exception):
        raise values[0]
    return values[0]


@dataclass(frozen=True)
class _MakeFollower:
    """Makes followers, and keeps them; `levels`: whether the next one is level at once."""

    followers: list[Follower]
    levels: list[bool]

    def __call__(
        self,
        _: Following,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        before: FollowedState | None,
    ) -> Follower:
        """As of a node."""
        is_level = self.levels.pop() if self.levels else True
        self.followers.append(Follower(settings, watch, course, is_level, before=before))
        return self.followers[-1]


def _catalog() -> Catalog:
    catalog = Catalog(MemoryStore(MemoryTree()), Znodes(""))
    catalog.format.ensure(OWNER)
    version = NetworkVersionRecord(NETWORK, VERSION, "", (), "digest", Millis(0), ())
    catalog.networks.deploy(DEPLOYED.network, version, (FRAGMENT,), None)
    return catalog


def make_node() -> Callable[[Exception | None], Node]:
    """Makes nodes over an in-memory catalog with one deployed fragment."""

    def make(raises: Exception | None) -> Node:
        catalog = _catalog()
        planned: list[Plan | Exception] = [PLAN]
        lanes: list[Lane] = []
        events: list[Event] = []
        newer: list[Exception] = []
        written = [NO_EPOCH]
        removed: list[tuple[ExpiringRecords, ...] | Exception] = [()]
        followers: list[Follower] = []
        levels: list[bool] = []
        logged: list[LoggedEvent] = []

        def make_plan(version: VersionId) -> Plan:
            assert version == DEPLOYED.version
            return _given(planned)

        def admit(names: FragmentNames) -> Epoch:
            assert names.fragment == MOVING.fragment
            if newer:
                raise newer[0]
            return written[0]

        def lane(settings: LaneSettings, followed: Followed | None) -> Lane:
            lanes.append(Lane(settings, followed, raises))
            return lanes[-1]

        context = NodeContext(
            node=NODE,
            catalog=catalog,
            make_plan=make_plan,
            find_expiring=lambda _needs, _now_ms: _given(removed),
            admit=admit,
            make_lane=lane,
            signals=Signals(),
            watched=Watched(),
            news=LaneNews(),
            followers=Followers(
                catalog.transfers,
                _MakeFollower(followers, levels),
                SystemClock(),
                logged.append,
                NODE.node,
            ),
            suspicions=Suspicions(SystemClock()),
            workers=Workers(Immediate(), Immediate(), Immediate(), Immediate()),
            log=logged.append,
            clock=SystemClock(),
        )
        performer = Performer(context, events.append)
        assert isinstance(context.signals, Signals)
        polled = context.signals, context.watched, context.news
        return Node(
            performer,
            lanes,
            events,
            *polled,
            catalog,
            newer,
            planned,
            written,
            removed,
            followers,
            levels,
            logged,
        )

    return make
