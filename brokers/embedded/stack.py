"""Kafka, ZooKeeper and a schema registry on this machine, started and stopped together."""

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
"""Told when a start is broken off; what has been started is then stopped."""


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
        """What clients of Kafka are told."""
        return f"{LOOPBACK}:{self.kafka_port}"

    @property
    def zookeeper_connect(self) -> str:
        """What clients of ZooKeeper are told."""
        return f"{LOOPBACK}:{self.zookeeper_port}{CHROOT}"

    @property
    def registry_url(self) -> str:
        """What clients of the registry are told."""
        return f"http://{LOOPBACK}:{self.registry_port}"


class Service(Protocol):
    """Something that runs inside this process and can be stopped."""

    def stop(self) -> None:
        """End it; returns when its port is free."""


StartRegistry = Callable[[StackSettings], Service]
"""Starts the registry once ZooKeeper is ready. Handed in, since schemas/ stands above brokers/."""


class EmbeddedStack:
    """One stack in one data folder. Start it once; stopping it twice does no harm.

    Should this process die, its children end and the folder is free for the next stack.
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
        """Start everything and return when all of it answers.

        Args:
            begun: called when the servers have been started but do not answer yet; what it adds as
                a child gets ready beside them.

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
            self._tell()
            undo.callback(control_path(self._data).unlink, missing_ok=True)
            self._undo = undo
            try:
                self._start(undo, begun)
            except KeyboardInterrupt:
                self._progress(STOPPING)
                raise
            self._undo = undo.pop_all()

    def stop(self) -> None:
        """Stop everything, the last started first. The data stay."""
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
        """Start a further process that belongs to the stack; it is stopped before the servers.

        Raises:
            EnvironmentProblem: it cannot be started.
        """
        child = start_child(spec, held_open=(self._lock,))
        self._undo.callback(child.stop)
        self._others.append(child)
        self._tell()
        return child

    def forget_ended(self) -> None:
        """Drop those further processes that have ended, also from what others are told."""
        living = [child for child in self._others if child.running]
        if len(living) < len(self._others):
            self._others = living
            self._tell()

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
        # The ports first: whoever runs a Kafka already should hear of it before a download.
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
        # On the way down the slower one is told first.
        undo.callback(kafka.begin_stop)
        self._servers = (zookeeper, kafka)
        if begun is not None:
            begun()
        zookeeper_ready(zookeeper, settings.zookeeper_port, self._clock)
        kafka_ready(kafka, settings.kafka_port, identity, self._clock)
        self._progress(Step("starting the schema registry"))
        registry = self._start_registry(settings)
        undo.callback(registry.stop)
        self._tell()
        self._progress(Step("the stack is up"))

    def _tell(self) -> None:
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
