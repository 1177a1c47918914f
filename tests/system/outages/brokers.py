"""A second broker for an embedded stack, whose first one stays its only controller."""

import json
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from brokers.embedded import kafka
from brokers.embedded.control import take_lock
from brokers.embedded.jars import kafka_classpath
from brokers.embedded.java import find_java
from brokers.embedded.kafka import HEAP_MB, Identity
from brokers.embedded.processes import Child
from brokers.embedded.servers import LOOPBACK, JavaServer, Place, start_server, write_file
from brokers.embedded.stack import StackSettings
from brokers.kafka.cluster import RemoteKafka
from brokers.ports import free_port
from pipeline.clock import Deadline
from pipeline.ids import TopicName, TransactionalId
from pipeline.system_clock import SystemClock

FIRST, SECOND = 1, 2
"""The ids of the brokers."""
READY_WITHIN_S = 120.0
GONE_WITHIN_S = 20.0
_POLL_S = 0.05
_CONFIGURATION = """\
process.roles=broker
node.id={id}
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
log.dirs=data
auto.create.topics.enable=false
log.cleaner.dedupe.buffer.size=16777216
"""


class SecondBroker:
    """A broker of its own process, which can be suspended, killed and started again.

    Args:
        stack: the stack, which runs.
        data: a folder of its own.
    """

    def __init__(self, stack: StackSettings, data: Path) -> None:
        self._first = stack.kafka_bootstrap_servers
        self._clock = SystemClock()
        stored = json.loads((stack.data / "kafka" / "identity.json").read_text(encoding="utf-8"))
        self._identity = Identity(**stored)
        self._class_path = kafka_classpath(stack.cache)
        self._place = Place(data, find_java(os.environ), take_lock(data, self._clock))
        self._port = free_port()
        self._child: Child | None = None

    @property
    def both(self) -> str:
        """The addresses of both brokers, for clients."""
        return f"{self._first},{LOOPBACK}:{self._port}"

    def format(self) -> None:
        """Format its folder for the cluster of the first broker."""
        text = _CONFIGURATION.format(
            id=SECOND,
            host=LOOPBACK,
            port=self._port,
            controller_port=self._identity.controller_port,
        )
        write_file(self._place.data / "kafka" / "server.properties", text)
        kafka._format(self._place, self._identity, self._class_path)

    def start(self) -> None:
        """Start it from its folder, and wait until the first broker names it."""
        server = JavaServer(
            "kafka", ("kafka.Kafka", "server.properties"), HEAP_MB, self._class_path
        )
        self._child = start_server(self._place, server)
        deadline = Deadline.after(self._clock, READY_WITHIN_S, "starting the second broker")
        while SECOND not in self._known():
            assert self._child.running, self._child.last_lines()
            deadline.check()
            self._clock.sleep(_POLL_S)

    def suspend(self) -> None:
        """Suspend it: its connections stay open without responses."""
        os.kill(self._running.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue it after a suspension."""
        os.kill(self._running.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End it with kill -9, and wait for its end."""
        child = self._running
        with suppress(ProcessLookupError):
            os.kill(child.pid, signal.SIGKILL)
        deadline = Deadline.after(self._clock, GONE_WITHIN_S, "killing the second broker")
        while child.running:
            deadline.check()
            self._clock.sleep(_POLL_S)
        child.stop()

    def close(self) -> None:
        """End it. To be called once."""
        if self._child is not None and self._child.running:
            self.kill()
        os.close(self._place.lock)

    @property
    def _running(self) -> Child:
        assert self._child is not None, "it was never started"
        return self._child

    def _known(self) -> set[int]:
        found = AdminClient({"bootstrap.servers": self._first}).list_topics(timeout=10)
        return set(found.brokers)


@contextmanager
def second_broker(stack: StackSettings, data: Path) -> Iterator[SecondBroker]:
    """A running second broker of a running stack; Kafka's own topics are on the first one."""
    use_coordinators(stack.kafka_bootstrap_servers)
    broker = SecondBroker(stack, data)
    try:
        broker.format()
        broker.start()
        yield broker
    finally:
        broker.close()


def use_coordinators(bootstrap: str) -> None:
    """Let Kafka create its topics of transactions and of groups, on the only broker there is."""
    topic = TopicName("coordinated")
    create_topic(bootstrap, topic, (FIRST,))
    deadline = Deadline.after(SystemClock(), READY_WITHIN_S, "a first transaction")
    writer = RemoteKafka(bootstrap).transactions(TransactionalId("coordinated"))
    try:
        writer.start(deadline)
        writer.begin()
        writer.send(topic, None, b"", timestamp_ms=0)
        writer.commit(deadline)
    finally:
        writer.close()
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "coordinated"})
    try:
        consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    finally:
        consumer.close()


def create_topic(
    bootstrap: str,
    topic: TopicName,
    leaders: Sequence[int],
    config: Mapping[str, str] | None = None,
) -> None:
    """Create a topic whose partitions have one replica each, on these brokers."""
    placed = [[leader] for leader in leaders]
    new = NewTopic(topic, len(placed), replica_assignment=placed, config=dict(config or {}))
    client = AdminClient({"bootstrap.servers": bootstrap})
    (created,) = client.create_topics([new]).values()
    created.result(READY_WITHIN_S)
