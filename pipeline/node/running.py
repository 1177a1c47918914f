"""A running node: its agent, what the agent uses, and its polls."""

import gc
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import KafkaServers
from brokers.kafka_interface import TopicAdmin
from pipeline import durations
from pipeline.agent.background import Background
from pipeline.agent.effects import Following
from pipeline.agent.event_recorder import EventRecorder
from pipeline.agent.follower_thread import FollowerLane
from pipeline.agent.followers import Followers
from pipeline.agent.logged import of_node
from pipeline.agent.loop import Agent, Mailbox
from pipeline.agent.perform import NodeContext, Performer, Workers
from pipeline.agent.planning import Planning
from pipeline.agent.polls.boundaries import BoundaryPoll
from pipeline.agent.polls.catalog import CatalogPoll
from pipeline.agent.polls.copies import CopiesPoll
from pipeline.agent.polls.ends import EndsPoll
from pipeline.agent.polls.engine import EnginePoll
from pipeline.agent.polls.heartbeats import HeartbeatPoll
from pipeline.agent.polls.metering import Counters, MeteringPoll
from pipeline.agent.polls.poll import Ending, Poll, start
from pipeline.agent.polls.warm_up import WarmUpPoll
from pipeline.agent.state import first_state
from pipeline.agent.suspicions import Suspicions
from pipeline.agent.watched import Watched
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import NodeRecord
from pipeline.checkpoint_store.opening import open_store
from pipeline.clock import Clock
from pipeline.deploy.documents import replan
from pipeline.event_log.event import EventKind
from pipeline.event_log.log import EventWriter
from pipeline.heartbeats.detector import Detector
from pipeline.heartbeats.pulse import Pulse
from pipeline.ids import NetworkId, NetworkLife, NodeId
from pipeline.lanes.expiry import find_expiring
from pipeline.lanes.follower_phases import FollowerCourse
from pipeline.names import heartbeats_topic
from pipeline.node.heartbeats.messages import Orders
from pipeline.node.heartbeats.sender import HeartbeatSender
from pipeline.node.metering.calibration import calibrate
from pipeline.node.metering.process_times import ProcessReader, can_meter
from pipeline.settings import Settings
from pipeline.spark.run.checkpoint_copies import CheckpointCopies
from pipeline.spark.run.checkpoints import remove_followed
from pipeline.spark.run.copied_standby import CopiedStandby
from pipeline.spark.run.follower import Follower
from pipeline.spark.run.handover import FollowedState
from pipeline.spark.run.lane import stable_lane
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.lane_settings import LaneSettings
from pipeline.spark.run.record_samples import RecordSamples
from pipeline.spark.run.schema_resolver import SchemaResolver
from pipeline.spark.session.cluster import is_cluster
from pipeline.spark.session.session import Session, java_process, watch_session
from pipeline.spark.session.task_times import TaskTimes
from pipeline.spark.warm_up.idle_session import IdleSession
from pipeline.spark.warm_up.warm_up import WarmUp
from schemas.client import RegistryClient

SERVER_TIMEOUT_S = 10.0
READER_TIMEOUT_S = 5.0
EVENT_LOG_S = 3.0
"""How long a node that ends waits for the last entries of the event log."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of a node."""

    data: Path
    checkpoints: Path

    @classmethod
    def of(cls, settings: Settings) -> "Folders":
        """From the settings; every path absolute."""
        data = Path(settings.data).expanduser().absolute()
        checkpoints = Path(settings.checkpoints).expanduser() if settings.checkpoints else None
        return cls(
            data=data,
            checkpoints=checkpoints.absolute() if checkpoints else data / "checkpoints",
        )

    def warm_up(self, settings: Settings) -> Path:
        """The folder of a warm-up's checkpoints, writable by the executors of a cluster."""
        where = self.checkpoints if is_cluster(settings.spark_master) else self.data / "spark"
        return where / settings.participant / f"warm-up-{settings.node}"


@dataclass(frozen=True, slots=True)
class Servers:
    """Connections of a node."""

    brokers: KafkaServers
    catalog: Catalog
    admin: TopicAdmin
    registry: RegistryClient


@dataclass(frozen=True)
class RunningNode:
    """A node that is registered, and can run fragments.

    Args:
        settings: of the node.
        servers: its connections.
        spark: its session.
        folders: its folders.
        clock: of all its parts.
        record: of the node.
    """

    settings: Settings
    servers: Servers
    spark: Session
    folders: Folders
    clock: Clock
    record: NodeRecord
    _mailbox: Mailbox = field(init=False, default_factory=Mailbox)
    _watched: Watched = field(init=False, default_factory=Watched)
    _news: LaneNews = field(init=False, default_factory=LaneNews)

    def run(self, stop: threading.Event, ready: Callable[[], None]) -> None:
        """Run the agent until the node is stopped; `ready` is called once it accepts fragments."""
        servers, clock, record = self.servers, self.clock, self.record
        writer = EventRecorder(record.node, self._event_writer, clock)
        writer.put(of_node(EventKind.NODE_UP, record, clock.now_ms()))
        idle = IdleSession(self.spark, self._resolver, self._kafka, servers.brokers, clock)
        warm_up, ending = WarmUp(idle, self.folders.warm_up(self.settings)), Ending(stop)
        host = self._host(warm_up)
        followers = self._followers(host, writer)
        performer = Performer(self._context(host, followers, writer), self._mailbox.put)
        state = first_state(record)
        pulse, ends = Pulse(clock), self._kafka.ends_reader()
        agent = Agent(self._mailbox, performer, state, clock, pulse.beat)
        trouble = watch_session(self.spark, self.settings.spark_master)
        polls: dict[str, Poll] = {
            "catalog": self._catalog_poll(followers, writer),
            "ends": EndsPoll(ends, self._watched, self._news, self._mailbox.put),
            "boundaries": self._boundary_poll(),
            "heartbeats": self._heartbeat_poll(),
            "warm-up": WarmUpPoll(warm_up, self._watched),
            **self._copies_polls(),
            **self._metering_polls(host),
            "engine": EnginePoll(trouble, ending),
        }
        # What a start leaves is not examined again, so the collector takes less time, and the
        # second call lets it run earlier: an object that Java keeps for Python is often part of a
        # cycle.
        gc.collect()
        gc.freeze()
        gc.collect()
        threads = [start(poll, name, stop, ending) for name, poll in polls.items()]
        self._report_up()
        ready()
        with _node_down(writer, record, clock):
            # While it stops, the agent decides nothing more.
            age_ms = lambda: 0 if stop.is_set() else pulse.age_ms()  # noqa: E731
            with closing(HeartbeatSender(self._orders, age_ms, host.steps.ages)):
                agent.run(stop)
            if self._copies is not None:
                self._copies.close()
            warm_up.end()
            for thread in threads:
                thread.join(SERVER_TIMEOUT_S)
            ends.close()
            ending.check()
        _log.info("node %s has stopped", record.node)

    # --- what the agent uses --------------------------------------------------------------------

    @cached_property
    def _suspicions(self) -> Suspicions:
        return Suspicions(self.clock)

    @cached_property
    def _kafka(self) -> RemoteKafka:
        return RemoteKafka(self.servers.brokers, self.clock)

    @cached_property
    def _resolver(self) -> SchemaResolver:
        servers, missing = self.servers, self.servers.catalog.missing_schemas
        return SchemaResolver(servers.registry, servers.admin, missing.all, missing.record)

    def _event_writer(self) -> EventWriter:
        producer = self._kafka.producer(SERVER_TIMEOUT_S)
        return EventWriter(self.record.participant, self.servers.admin, producer)

    def _host(self, warm_up: WarmUp) -> LaneHost:
        return LaneHost(
            self.record.node,
            self.spark,
            self._resolver,
            self._kafka,
            self.servers.brokers,
            self.folders.checkpoints,
            self.clock,
            self._mailbox.report,
            claimed=warm_up.end,
            news=self._news,
            copies=self._copies,
        )

    @cached_property
    def _copies(self) -> CheckpointCopies | None:
        """Copies of checkpoints; None: there is no checkpoint store."""
        store = open_store(self.settings)
        if store is None:
            return None
        return CheckpointCopies(store, self.clock, self.record.node, self._is_deployed)

    def _is_deployed(self, network: NetworkId, life: NetworkLife) -> bool:
        found = self.servers.catalog.networks.get(network)
        return found is not None and found.life == life

    def _followers(self, host: LaneHost, recorder: EventRecorder) -> Followers:
        """The followers of this node; what those of an earlier run have left is removed."""
        node = self.record.node
        remove_followed(host.checkpoints, self.record.participant, node)
        cores = host.spark.sparkContext.defaultParallelism
        return Followers(
            self.servers.catalog.transfers,
            _MakeFollower(host, node),
            host.clock,
            recorder.put,
            node,
            at_once=max(1, cores // 2),
        )

    def _context(
        self, host: LaneHost, followers: Followers, recorder: EventRecorder
    ) -> NodeContext:
        catalog = self.servers.catalog
        return NodeContext(
            node=self.record,
            catalog=catalog,
            make_plan=Planning(catalog.versions.get, replan).plan,
            admit=host.admit,
            make_lane=partial(stable_lane, host=host),
            signals=self._kafka.producer(SERVER_TIMEOUT_S),
            watched=self._watched,
            news=self._news,
            followers=followers,
            suspicions=self._suspicions,
            find_expiring=partial(find_expiring, self.servers.admin),
            workers=Workers(*map(Background, ("planning", "signals", "reports", "topics"))),
            log=recorder.put,
            clock=self.clock,
        )

    # --- polls and reports ----------------------------------------------------------------------

    def _catalog_poll(self, followers: Followers, recorder: EventRecorder) -> CatalogPoll:
        return CatalogPoll(
            self.servers.catalog,
            self.record,
            self.clock,
            self._mailbox.put,
            recorder.put,
            self._suspicions,
            lambda: self._watched.noted(followers.standbys()),
        )

    def _boundary_poll(self) -> BoundaryPoll:
        open_reader = partial(self._kafka.reader, READER_TIMEOUT_S)
        return BoundaryPoll(self.servers.admin, open_reader, self._watched, self.clock, self._news)

    def _copies_polls(self) -> dict[str, Poll]:
        copies = self._copies
        return {} if copies is None else {"copies": CopiesPoll(copies, self._watched)}

    def _metering_polls(self, host: LaneHost) -> dict[str, Poll]:
        """The poll that meters; none where the system has not what it reads."""
        java = java_process(self.spark)
        if java is None or not can_meter():
            _log.info("the load of this node is not metered: the system has no /proc as Linux")
            return {}
        remote = is_cluster(self.settings.spark_master)
        samples = RecordSamples(self._kafka, self.servers.admin, self.clock)
        counters = Counters(
            ProcessReader(java), TaskTimes(self.spark), host.meters, samples, remote
        )
        speed, cores = calibrate(), self.spark.sparkContext.defaultParallelism
        _log.info("a core has %.2f of the reference core's speed", speed.permille / 1_000)
        loads, clock = self.servers.catalog.loads, self.clock
        poll = MeteringPoll(self.record, counters, speed, cores, loads, clock, time.thread_time_ns)
        return {"metering": poll}

    def _heartbeat_poll(self) -> HeartbeatPoll:
        record, limit_ms = self.record, durations.parse(self.settings.suspect_after)
        detector = Detector(record.node, record.started_at_ms, limit_ms)
        topic = heartbeats_topic(record.participant)
        return HeartbeatPoll(self._kafka, topic, detector, self.clock, self._suspicions.note)

    @property
    def _orders(self) -> Orders:
        record = self.record
        return Orders(self.servers.brokers, record.participant, record.node, record.started_at_ms)

    def _report_up(self) -> None:
        record = self.record
        _log.info("node %s is up", record.node)
        if record.node in self.servers.catalog.drains.of(record.participant):
            _log.warning(
                "node %s is drained: until `medusa node undrain` it claims only what no other node "
                "that is up may run",
                record.node,
            )


@dataclass(frozen=True, slots=True)
class _MakeFollower:
    """Makes what a node runs for a fragment of another one."""

    host: LaneHost
    node: NodeId

    def __call__(
        self,
        following: Following,
        settings: LaneSettings,
        watch: Callable[[], None],
        course: FollowerCourse,
        before: FollowedState | None,
    ) -> FollowerLane:
        """See `MakeFollower`."""
        if following.is_active:
            return Follower(settings, watch, course, self.host, self.node, before)
        record = following.deployed.record
        return CopiedStandby(settings, watch, course, record, host=self.host, node=self.node)


@contextmanager
def _node_down(recorder: EventRecorder, record: NodeRecord, clock: Clock) -> Iterator[None]:
    """Log the end of the node, with the error that leaves the block."""
    why = ""
    try:
        yield
    except Exception as error:
        why = str(error)
        raise
    finally:
        recorder.put(of_node(EventKind.NODE_DOWN, record, clock.now_ms(), why))
        recorder.end(EVENT_LOG_S)
