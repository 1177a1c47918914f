"""The run of a node: connects, opens the Spark session, registers, runs the agent."""

import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from brokers.embedded.control import process_born
from brokers.embedded.java import Java, find_java
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.servers import kafka_servers
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline import durations
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.nodes import name_taken
from pipeline.catalog.records import NodeRecord
from pipeline.clock import Clock, Deadline
from pipeline.errors import EnvironmentProblem, UnavailableError
from pipeline.formats import NEWEST
from pipeline.ids import NodeId, ParticipantId
from pipeline.labels import parse_labels
from pipeline.names import Znodes
from pipeline.node.opening import unless_stopped
from pipeline.node.running import SERVER_TIMEOUT_S, Folders, RunningNode, Servers
from pipeline.settings import Settings
from pipeline.spark.run.steered_query import check_steerable
from pipeline.spark.session.cluster import check_folder, is_cluster
from pipeline.spark.session.session import (
    Session,
    SessionSettings,
    abandon_session,
    close_session,
    open_session,
    session_settings,
)
from pipeline.system_clock import SystemClock
from schemas.client import RegistryClient
from schemas.transport import registry_address

SERVER_POLL_S = 0.2
ABANDON_S = 5.0
DISTRIBUTION = "medusa-streams"

_log = logging.getLogger(__name__)


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
        servers, spark = started
        record = _register(settings, servers.catalog, clock)
        RunningNode(settings, servers, spark, folders, clock, record).run(stop, ready)


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
        most_fragments=int(settings.most_fragments or 0),
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
