"""Kafka, ZooKeeper and the registry of one folder; each can be killed, paused and restarted.

The product's own stack ends when one of its servers ends, so it cannot be used here.
"""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Self

from brokers.embedded.control import take_lock
from brokers.embedded.fetch import ensure_jars
from brokers.embedded.java import find_java
from brokers.embedded.kafka import Identity, Listener, kafka_ready, start_kafka
from brokers.embedded.processes import Child
from brokers.embedded.servers import Place
from brokers.embedded.stack import StackSettings
from brokers.embedded.zookeeper import start_zookeeper, zookeeper_ready
from brokers.ports import free_port
from pipeline.clock import Clock, Deadline
from schemas.embedded import EmbeddedRegistry, start_registry

GONE_WITHIN_S = 20.0


class Server(Enum):
    """A server in a separate process."""

    KAFKA = "kafka"
    ZOOKEEPER = "zookeeper"


@dataclass(frozen=True, slots=True)
class _Kafka:
    child: Child
    identity: Identity


class Servers:
    """Three servers on free ports of loopback; use it in `with`.

    Args:
        data: their folder.
        cache: of the jars.
        clock: for deadlines.
    """

    def __init__(self, data: Path, cache: Path, clock: Clock) -> None:
        self.settings = StackSettings(data, cache, free_port(), free_port(), free_port())
        self.cuttable = Listener("CUTTABLE", free_port(), free_port())
        """Kafka's listener for nodes whose connections go through a relay at the second port."""
        self._clock = clock
        self._lock = take_lock(data, clock)
        java = find_java(os.environ)
        ensure_jars(cache, lambda: java)
        self._place = Place(data, java, self._lock)
        self._kafka: _Kafka | None = None
        self._zookeeper: Child | None = None
        self._registry: EmbeddedRegistry | None = None

    def __enter__(self) -> Self:
        try:
            self.begin(Server.ZOOKEEPER)
            self.begin(Server.KAFKA)
            self.await_ready(Server.ZOOKEEPER)
            self.await_ready(Server.KAFKA)
            self.start_registry()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def begin(self, server: Server) -> None:
        """Start a server that does not run, without waiting until it is ready."""
        if server is Server.KAFKA:
            port, cache = self.settings.kafka_port, self.settings.cache
            child, identity = start_kafka(self._place, port, cache, (self.cuttable,))
            self._kafka = _Kafka(child, identity)
        else:
            self._zookeeper = start_zookeeper(self._place, self.settings.zookeeper_port)

    def await_ready(self, server: Server) -> None:
        """Wait until a started server answers.

        Raises:
            EnvironmentProblem: it ended, or took too long.
        """
        if server is Server.KAFKA and self._kafka is not None:
            kafka = self._kafka
            kafka_ready(kafka.child, self.settings.kafka_port, kafka.identity, self._clock)
        if server is Server.ZOOKEEPER and self._zookeeper is not None:
            zookeeper_ready(self._zookeeper, self.settings.zookeeper_port, self._clock)

    @property
    def kafka_logs(self) -> Path:
        """The broker's log folder."""
        return self._place.data / "kafka" / "data"

    def kill(self, server: Server) -> None:
        """End a server with kill -9, and wait for its end."""
        child = self._child(server)
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        deadline = Deadline.after(self._clock, GONE_WITHIN_S, f"killing {server.value}")
        while child.running:
            deadline.check()
            self._clock.sleep(0.01)
        child.stop()

    def pause(self, server: Server) -> None:
        """Suspend a server: its connections stay open without responses."""
        os.kill(self.pid(server), signal.SIGSTOP)

    def resume(self, server: Server) -> None:
        """Resume a paused server."""
        os.kill(self.pid(server), signal.SIGCONT)

    def pid(self, server: Server) -> int:
        """The id of a server's process."""
        return self._child(server).pid

    def stop_registry(self) -> None:
        """Stop the registry; connections to it are refused."""
        if self._registry is not None:
            self._registry.stop()
            self._registry = None

    def start_registry(self) -> None:
        """Start the registry; ZooKeeper must run."""
        if self._registry is None:
            self._registry = start_registry(self.settings)

    def close(self) -> None:
        """End all servers. Idempotent."""
        self.stop_registry()
        for child in (self._kafka.child if self._kafka else None, self._zookeeper):
            if child is not None:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGCONT)
                child.stop()
        self._kafka, self._zookeeper = None, None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _child(self, server: Server) -> Child:
        child = self._zookeeper
        if server is Server.KAFKA:
            child = self._kafka.child if self._kafka is not None else None
        if child is None:
            raise RuntimeError(f"{server.value} was never started")
        return child
