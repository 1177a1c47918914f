"""The embedded stack: Kafka, ZooKeeper and a schema registry, started and stopped together."""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from brokers.embedded.control import (
    CONTROL_FORMAT,
    ControlFile,
    Member,
    control_path,
    process_born,
    take_lock,
    write_control,
)
from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import Java, find_java
from brokers.embedded.kafka import kafka_ready, start_kafka
from brokers.embedded.processes import Child, ChildSpec, start_child
from brokers.embedded.progress import Progress, Step, silent
from brokers.embedded.servers import LOOPBACK, Place, require_free_port
from brokers.embedded.zookeeper import start_zookeeper, zookeeper_ready
from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.system_clock import SystemClock

CHROOT = "/medusa"
STOPPING = Step("stopping…")
"""Reported when a start is interrupted; the servers that have been started are then stopped."""


@dataclass(frozen=True, slots=True)
class StackSettings:
    """Where a stack keeps its data, where the jars are, and the ports on loopback."""

    data: Path
    cache: Path
    kafka_port: int = 9092
    zookeeper_port: int = 2181
    registry_port: int = 8081

    @property
    def kafka_bootstrap_servers(self) -> str:
        """The address for clients of Kafka."""
        return f"{LOOPBACK}:{self.kafka_port}"

    @property
    def zookeeper_connect(self) -> str:
        """The connect string for clients of ZooKeeper."""
        return f"{LOOPBACK}:{self.zookeeper_port}{CHROOT}"

    @property
    def registry_url(self) -> str:
        """The URL for clients of the registry."""
        return f"http://{LOOPBACK}:{self.registry_port}"


class Service(Protocol):
    """A server that runs inside this process."""

    def stop(self) -> None:
        """Stop it; returns when its port is free."""


StartRegistry = Callable[[StackSettings], Service]
"""Starts the registry once ZooKeeper is ready; an argument, as brokers/ may not import schemas/."""


class EmbeddedStack:
    """One stack in one data folder. Start it once; a second stop does nothing.

    When this process ends for any reason, its children end and the lock of the folder is released.
    """

    def __init__(
        self,
        settings: StackSettings,
        start_registry: StartRegistry,
        progress: Progress = silent,
        *,
        prepare: Callable[[Java], None] | None = None,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.settings = settings
        self._start_registry = start_registry
        self._progress = progress
        self._prepare = prepare
        self._environment = os.environ if environment is None else environment
        self._clock = clock or SystemClock()
        self._data = settings.data.expanduser().absolute()
        self._started_at_ms = 0
        self._lock = -1
        self._servers: tuple[Child, ...] = ()
        self._others: list[Child] = []
        self._undo = ExitStack()

    def start(self, begun: Callable[[], None] | None = None) -> None:
        """Start all servers and return when all of them answer.

        Args:
            begun: called when the servers have been started but do not answer yet; children that it
                adds start concurrently with them.

        Raises:
            RefusedError: a stack runs in the data folder already.
            EnvironmentProblem: Java, a port or a writable folder is missing, or a server failed.
            UnavailableError: jars are missing and cannot be fetched.
        """
        if self._lock >= 0:
            raise RefusedError("this stack was started already")
        with ExitStack() as undo:
            self._lock = take_lock(self._data, self._clock)
            undo.callback(self._release_lock)
            self._started_at_ms = self._clock.now_ms()
            self._write_control()
            undo.callback(control_path(self._data).unlink, missing_ok=True)
            self._undo = undo
            try:
                self._start(undo, begun)
            except KeyboardInterrupt:
                self._progress(STOPPING)
                raise
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """Stop all children, the last started first. The data remain."""
        self._undo.close()

    @property
    def servers(self) -> tuple[Child, ...]:
        """ZooKeeper and Kafka."""
        return self._servers

    @property
    def children(self) -> tuple[Child, ...]:
        """All child processes, the servers first."""
        return (*self._servers, *self._others)

    def add_child(self, spec: ChildSpec) -> Child:
        """Start another child process of the stack; it is stopped before the servers.

        Raises:
            EnvironmentProblem: it cannot be started.
        """
        child = start_child(spec, pass_fds=(self._lock,))
        self._undo.callback(child.stop)
        self._others.append(child)
        self._write_control()
        return child

    def forget_ended(self) -> None:
        """Remove added children that have ended, also from the control file."""
        running = [child for child in self._others if child.running]
        if len(running) < len(self._others):
            self._others = running
            self._write_control()

    def check(self) -> None:
        """Raise if a child has ended by itself.

        Raises:
            EnvironmentProblem: names it, with its last log lines.
        """
        for child in self.children:
            if not child.running:
                raise child.failure(f"it ended by itself with exit code {child.exit_code}")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, undo: ExitStack, begun: Callable[[], None] | None) -> None:
        settings = self.settings
        # The ports first: a user with a running Kafka gets the error before a download.
        require_free_port(settings.zookeeper_port, "ZooKeeper")
        require_free_port(settings.kafka_port, "Kafka")
        require_free_port(settings.registry_port, "schema registry")
        java = find_java(self._environment)
        ensure_jars(settings.cache, lambda: java, self._progress)
        if self._prepare is not None:
            self._prepare(java)
        place = Place(self._data, java, self._lock)
        self._progress(Step("starting Kafka and ZooKeeper"))
        zookeeper = start_zookeeper(place, settings.zookeeper_port)
        undo.callback(zookeeper.stop)
        kafka, identity = start_kafka(place, settings.kafka_port, settings.cache)
        undo.callback(kafka.stop)
        # At the stop, the slower server is signalled first.
        undo.callback(kafka.begin_stop)
        self._servers = (zookeeper, kafka)
        if begun is not None:
            begun()
        zookeeper_ready(zookeeper, settings.zookeeper_port, self._clock)
        kafka_ready(kafka, settings.kafka_port, identity, self._clock)
        self._progress(Step("starting the schema registry"))
        undo.callback(self._start_registry(settings).stop)
        self._write_control()
        self._progress(Step("the stack is up"))

    def _write_control(self) -> None:
        pid = os.getpid()
        write_control(
            self._data,
            ControlFile(
                pid=pid,
                born=process_born(pid) or "",
                started_at_ms=self._started_at_ms,
                kafka_bootstrap_servers=self.settings.kafka_bootstrap_servers,
                zookeeper_connect=self.settings.zookeeper_connect,
                registry_url=self.settings.registry_url,
                members=tuple(Member(child.spec.name, child.pid) for child in self.children),
                format=CONTROL_FORMAT,
            ),
        )

    def _release_lock(self) -> None:
        os.close(self._lock)
        self._lock = -1
        self._servers = ()
        self._others = []
