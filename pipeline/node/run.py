"""The run of a node: connects, opens the Spark session, registers, runs the agent."""

import gc
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from brokers.embedded.control import process_born
from brokers.embedded.java import Java, find_java
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import KafkaServers, kafka_servers
from brokers.kafka_interface import KafkaCluster, TopicAdmin
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline import durations
from pipeline.agent.background import Background
from pipeline.agent.event_recorder import EventRecorder
from pipeline.agent.followers import Followers
from pipeline.agent.logged import of_node
from pipeline.agent.loop import Agent, Mailbox
from pipeline.agent.perform import NodeContext, Performer, Workers
from pipeline.agent.planning import Planning
from pipeline.agent.polls.boundaries import BoundaryPoll
from pipeline.agent.polls.catalog import CatalogPoll
from pipeline.agent.polls.ends import EndsPoll
from pipeline.agent.polls.engine import EnginePoll
from pipeline.agent.polls.poll import Ending, Poll, start
from pipeline.agent.polls.warm_up import WarmUpPoll
from pipeline.agent.state import NodeState, Shared
from pipeline.agent.suspicions import Suspicions
from pipeline.agent.watched import Watched
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.nodes import name_taken
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock, Deadline
from pipeline.deploy.documents import replan
from pipeline.errors import EnvironmentProblem, UnavailableError
from pipeline.event_log.event import EventKind
from pipeline.event_log.log import EventWriter
from pipeline.formats import NEWEST
from pipeline.ids import NodeId, ParticipantId
from pipeline.labels import parse_labels
from pipeline.lanes.expiry import find_expiring
from pipeline.names import Znodes
from pipeline.node.opening import unless_stopped
from pipeline.settings import Settings
from pipeline.spark.run.checkpoints import remove_followed
from pipeline.spark.run.follower import Follower
from pipeline.spark.run.lane import stable_lane
from pipeline.spark.run.lane_host import LaneHost
from pipeline.spark.run.lane_news import LaneNews
from pipeline.spark.run.schema_resolver import SchemaResolver
from pipeline.spark.run.steered_query import check_steerable
from pipeline.spark.session.cluster import check_folder, is_cluster
from pipeline.spark.session.session import (
    Session,
    SessionSettings,
    abandon_session,
    close_session,
    open_session,
    session_settings,
    watch_session,
)
from pipeline.spark.warm_up.idle_session import IdleSession
from pipeline.spark.warm_up.warm_up import WarmUp
from pipeline.system_clock import SystemClock
from schemas.client import RegistryClient
from schemas.transport import registry_address

SERVER_TIMEOUT_S = 10.0
SERVER_POLL_S = 0.2
READER_TIMEOUT_S = 5.0
ABANDON_S = 5.0
EVENT_LOG_S = 3.0
"""How long a node that ends waits for the last entries of the event log."""
DISTRIBUTION = "medusa-streams"

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


def run_node(
    settings: Settings,
    stop: threading.Event,
    ready: Callable[[], None],
    *,
    progress: Callable[[str], None] = _log.info,
    servers_within_s: float = 0.0,
) -> None:
    """Run until `stop` is set; `ready` is called once the node accepts fragments.

    Args:
        settings: name of the node, addresses of its servers.
        stop: ends the node at a batch boundary of each lane; while it starts, at once.
        ready: called once.
        progress: receives messages while the node starts.
        servers_within_s: 0: the servers have to answer now. Otherwise they may still be starting:
            the Spark session is opened meanwhile, and this is the time limit after that.

    Raises:
        UnavailableError: a server does not answer.
        RefusedError: a node of this name is up already.
        NewerFormatError: the catalog is too new for this version, at the start or later.
        EnvironmentProblem: Java, a jar or a writable folder is missing, or it is another Spark.
    """
    folders, clock = Folders.of(settings), SystemClock()
    _make_writable(folders.data, folders.checkpoints)
    java = find_java(os.environ)
    with ExitStack() as undo:
        opening = _Opening(settings, stop, progress, clock, undo)
        started = opening.both(_session(settings, folders, java), servers_within_s)
        if started is None:
            return
        _run(settings, _Engine(*started, folders, clock), stop, ready)


@dataclass(frozen=True, slots=True)
class _Engine:
    """The connections, session and folders of a node, once all of them exist."""

    servers: Servers
    spark: Session
    folders: Folders
    clock: Clock


def _run(
    settings: Settings, engine: _Engine, stop: threading.Event, ready: Callable[[], None]
) -> None:
    """Register the node, and run its agent until it is stopped."""
    servers, clock = engine.servers, engine.clock
    record = _register(settings, servers.catalog, clock)
    mailbox, watched, news, ending = Mailbox(), Watched(), LaneNews(), Ending(stop)
    resolver, brokers = _resolver(servers), servers.brokers
    kafka = RemoteKafka(brokers, clock)
    recorder = EventRecorder(record.node, partial(_event_writer, record, servers, kafka), clock)
    recorder.put(of_node(EventKind.NODE_UP, record, clock.now_ms()))
    idle = IdleSession(engine.spark, resolver, kafka, brokers, clock)
    warm_up = WarmUp(idle, engine.folders.warm_up(settings))
    host = LaneHost(
        engine.spark,
        resolver,
        kafka,
        brokers,
        engine.folders.checkpoints,
        clock,
        mailbox.report,
        claimed=warm_up.end,
        news=news,
    )
    followers = _followers(host, servers.catalog, record, recorder)
    suspicions = Suspicions()
    context = NodeContext(
        node=record,
        catalog=servers.catalog,
        make_plan=Planning(servers.catalog.versions.get, replan).plan,
        admit=host.admit,
        make_lane=partial(stable_lane, host=host),
        signals=kafka.producer(SERVER_TIMEOUT_S),
        watched=watched,
        news=news,
        followers=followers,
        suspicions=suspicions,
        find_expiring=partial(find_expiring, servers.admin),
        workers=Workers(*map(Background, ("planning", "signals", "reports", "topics"))),
        log=recorder.put,
        clock=clock,
    )
    state = NodeState(Shared(record.node, record.participant, record.started_at_ms))
    agent = Agent(mailbox, Performer(context, mailbox.put), state, clock)
    ends = kafka.ends_reader()
    polls: dict[str, Poll] = {
        "catalog": CatalogPoll(
            servers.catalog,
            record,
            clock,
            mailbox.put,
            recorder.put,
            suspicions,
            followers.standbys,
        ),
        "ends": EndsPoll(ends, watched, news, mailbox.put),
        "boundaries": _boundary_poll(servers, watched, clock, news),
        "warm-up": WarmUpPoll(warm_up, watched),
        "engine": EnginePoll(watch_session(engine.spark, settings.spark_master), ending),
    }
    # What a start leaves is not examined again, so the collector takes less time, and the second
    # call lets it run earlier: an object that Java keeps for Python is often part of a cycle.
    gc.collect()
    gc.freeze()
    gc.collect()
    threads = [start(poll, name, stop, ending) for name, poll in polls.items()]
    _report_up(record, servers.catalog)
    ready()
    with _node_down(recorder, record, clock):
        agent.run(stop)
        warm_up.end()
        for thread in threads:
            thread.join(SERVER_TIMEOUT_S)
        ends.close()
        ending.check()
    _log.info("node %s has stopped", record.node)


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


def _followers(
    host: LaneHost, catalog: Catalog, record: NodeRecord, recorder: EventRecorder
) -> Followers:
    """The followers of this node; what those of an earlier run have left is removed."""
    remove_followed(host.checkpoints, record.node)
    cores = host.spark.sparkContext.defaultParallelism
    return Followers(
        catalog.transfers,
        partial(Follower, host=host, node=record.node),
        host.clock,
        recorder.put,
        at_once=max(1, cores // 2),
    )


def _report_up(record: NodeRecord, catalog: Catalog) -> None:
    _log.info("node %s is up", record.node)
    if record.node in catalog.drains.of(record.participant):
        _log.warning(
            "node %s is drained: it claims nothing until `medusa node undrain`", record.node
        )


def _event_writer(record: NodeRecord, servers: Servers, kafka: KafkaCluster) -> EventWriter:
    return EventWriter(record.participant, servers.admin, kafka.producer(SERVER_TIMEOUT_S))


def _resolver(servers: Servers) -> SchemaResolver:
    missing = servers.catalog.missing_schemas
    return SchemaResolver(servers.registry, servers.admin, missing.all, missing.record)


@dataclass(frozen=True, slots=True)
class _Opening:
    """The slow steps of a start; each returns None as soon as the node is stopped."""

    settings: Settings
    stop: threading.Event
    progress: Callable[[str], None]
    clock: Clock
    undo: ExitStack

    def both(self, session: SessionSettings, within_s: float) -> tuple[Servers, Session] | None:
        """Connect and open the session; in this order, unless the servers may still be starting."""
        servers = None if within_s else self.connect(0.0)
        spark = self.open_session(session)
        if within_s:
            servers = self.connect(within_s)
        if servers is None or spark is None or self.stop.is_set():
            return None
        return servers, spark

    def connect(self, within_s: float) -> Servers | None:
        """Connect to everything, within the time limit; 0 seconds: a single try."""
        settings = self.settings
        self.progress(
            f"connecting to ZooKeeper {settings.zookeeper_connect}, "
            f"Kafka {settings.kafka_bootstrap_servers}, registry {settings.registry_url}"
        )
        deadline = Deadline.after(self.clock, within_s, "waiting for the servers")
        return unless_stopped(partial(self._await_servers, deadline), self.stop)

    def open_session(self, settings: SessionSettings) -> Session | None:
        """Open the Spark session; if the node is stopped meanwhile, its Java process is ended."""
        ended = threading.Event()

        def work() -> Session:
            try:
                spark = open_session(settings)
                check_steerable(spark)
                if is_cluster(settings.master):
                    check_folder(spark, settings.master, Folders.of(self.settings).checkpoints)
                return spark
            finally:
                ended.set()

        if self.stop.is_set():
            return None
        self.progress("opening the Spark session")
        spark = unless_stopped(work, self.stop)
        if spark is None:
            abandon_session(ended, ABANDON_S)
        else:
            self.undo.callback(close_session, spark)
        return spark

    def _await_servers(self, deadline: Deadline) -> Servers | None:
        """Connect as soon as everything answers; None if the node was stopped meanwhile."""
        while not self.stop.is_set():
            try:
                return _connect(self.settings, self.undo)
            except UnavailableError:
                if deadline.passed:
                    raise
            self.stop.wait(SERVER_POLL_S)
        return None


def _connect(settings: Settings, undo: ExitStack) -> Servers:
    """Connect to all servers, or to none."""
    with ExitStack() as attempt:
        session_s = durations.parse(settings.zookeeper_session_timeout) / 1_000
        store = ZooKeeperStore.connect(zookeeper_servers(settings), SERVER_TIMEOUT_S, session_s)
        attempt.callback(store.close)
        catalog = Catalog(store, Znodes(""))
        participant = ParticipantId(settings.participant)
        catalog.format.ensure(participant)
        # Spark takes seconds to open; registering decides, this only fails earlier.
        refuse_second(participant, NodeId(settings.node), catalog)
        catalog.nodes.of(participant)  # rejects records of a newer version
        brokers = kafka_servers(settings)
        admin = KafkaAdmin(brokers, SERVER_TIMEOUT_S)
        admin.cluster_id()
        registry = RegistryClient(registry_address(settings), SERVER_TIMEOUT_S)
        attempt.callback(registry.close)
        registry.subjects()
        undo.push(attempt.pop_all())
    return Servers(brokers, catalog, admin, registry)


def _boundary_poll(
    servers: Servers, watched: Watched, clock: Clock, news: LaneNews
) -> BoundaryPoll:
    open_reader = partial(RemoteKafka(servers.brokers, clock).reader, READER_TIMEOUT_S)
    return BoundaryPoll(servers.admin, open_reader, watched, clock, news)


def _register(settings: Settings, catalog: Catalog, clock: Clock) -> NodeRecord:
    record = NodeRecord(
        node=NodeId(settings.node),
        participant=ParticipantId(settings.participant),
        host=socket.gethostname(),
        pid=os.getpid(),
        started_at_ms=clock.now_ms(),
        version=version(DISTRIBUTION),
        reads=NEWEST,
        labels=parse_labels(settings.labels),
        capacity=int(settings.capacity),
    )
    catalog.nodes.register(record, replaces=_dead_predecessor(catalog, record))
    return record


def refuse_second(participant: ParticipantId, node: NodeId, catalog: Catalog) -> None:
    """Raise if a node of this name of the participant is running.

    Raises:
        RefusedError: names its process.
    """
    found = catalog.nodes.get(participant, node)
    if found is not None and not _has_ended(found):
        raise name_taken(found)


def _dead_predecessor(catalog: Catalog, record: NodeRecord) -> NodeRecord | None:
    """An earlier run of this node whose session still exists, although its process has ended."""
    found = catalog.nodes.get(record.participant, record.node)
    return found if found is not None and _has_ended(found) else None


def _has_ended(other: NodeRecord) -> bool:
    """Whether the process of a node has certainly ended; False for other machines."""
    return other.host == socket.gethostname() and process_born(other.pid) is None


def _session(settings: Settings, folders: Folders, java: Java) -> SessionSettings:
    return session_settings(settings, f"medusa-{settings.node}", folders.data / "spark", java)


def _make_writable(*folders: Path) -> None:
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentProblem(
                f"the folder cannot be made: {error.strerror}",
                place=str(folder),
                hint="choose another one with the setting `data`, or make it writable",
            ) from error
        if not os.access(folder, os.W_OK):
            raise EnvironmentProblem(
                "the folder cannot be written",
                place=str(folder),
                hint="choose another one with the setting `data`, or make it writable",
            )
