"""Both implementations of the conformance suites: in memory, and the real server."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.embedded.stack import EmbeddedStack
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka_interface import KafkaCluster, TopicAdmin, TransactionWriter
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import NewTopicSpec
from brokers.versioned_store import VersionedStore
from brokers.zookeeper import ZooKeeperStore
from pipeline.clock import Deadline
from pipeline.ids import TopicName, TransactionalId
from pipeline.system_clock import SystemClock
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import grow

TIMEOUT_S = 10.0
OpenSession = Callable[[], VersionedStore]


def zookeeper_sessions(stack: EmbeddedStack) -> OpenSession:
    """Opens sessions on a unique chroot."""
    connect = f"{stack.settings.zookeeper_connect}/conformance/{uuid.uuid4().hex}"
    return lambda: ZooKeeperStore.connect(connect, TIMEOUT_S)


@pytest.fixture(params=["memory", pytest.param("zookeeper", marks=pytest.mark.system)])
def open_session(request: pytest.FixtureRequest) -> Iterator[OpenSession]:
    """Opens sessions on one fresh tree; they are closed after the test."""
    tree = MemoryTree()
    opened: list[VersionedStore] = []
    opens: OpenSession = lambda: MemoryStore(tree)  # noqa: E731 - one of two values
    if request.param == "zookeeper":
        opens = zookeeper_sessions(request.getfixturevalue("embedded_stack"))

    def open_one() -> VersionedStore:
        store = opens()
        opened.append(store)
        return store

    yield open_one
    for store in opened:
        store.close()


@dataclass(frozen=True)
class Cluster:
    """A Kafka cluster. Use topic names that `topic` returns.

    Args:
        kafka: opens readers and writers.
        admin: administers topics.
        admin_within: administers topics, with a timeout in seconds.
        grow: raises the number of partitions of a topic.
    """

    kafka: KafkaCluster
    admin: TopicAdmin
    admin_within: Callable[[float], TopicAdmin]
    grow: Callable[[TopicName, int], None]

    def topic(self, partitions: int = 2, **config: str) -> TopicName:
        """Create a topic. It keeps records of any timestamp, unless `retention_ms` is given."""
        given = {"retention_ms": "-1", **config}
        settings = tuple((name.replace("_", "."), value) for name, value in given.items())
        name = fresh_topic()
        self.admin.create_topics((NewTopicSpec(name, partitions, 1, settings),))
        return name


def fresh_topic() -> TopicName:
    """A unique topic name."""
    return TopicName(f"conformance-{uuid.uuid4().hex}")


def memory_cluster() -> Cluster:
    """A cluster in memory."""
    kafka = MemoryKafka(TwinClock())
    return Cluster(kafka, kafka, lambda _: kafka, partial(grow, kafka))


def embedded_cluster(stack: EmbeddedStack) -> Cluster:
    """The cluster of a stack."""
    servers = stack.settings.kafka_bootstrap_servers
    return Cluster(
        RemoteKafka(servers),
        KafkaAdmin(servers, TIMEOUT_S),
        lambda timeout_s: KafkaAdmin(servers, timeout_s),
        partial(_grow, servers),
    )


def _grow(servers: str, topic: TopicName, partitions: int) -> None:
    """Add partitions to a topic of real brokers."""
    admin = AdminClient({"bootstrap.servers": servers})
    (grown,) = admin.create_partitions([NewPartitions(topic, partitions)]).values()
    grown.result(TIMEOUT_S)


@pytest.fixture(params=["memory", pytest.param("broker", marks=pytest.mark.system)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """Either of them."""
    if request.param == "memory":
        return memory_cluster()
    return embedded_cluster(request.getfixturevalue("embedded_stack"))


def deadline() -> Deadline:
    """Deadline of one call."""
    return Deadline.after(SystemClock(), TIMEOUT_S, "a test")


@contextmanager
def started(cluster: Cluster, transactional_id: str) -> Iterator[TransactionWriter]:
    """A writer that has fenced every older one of its id."""
    writer = cluster.kafka.transactions(TransactionalId(transactional_id))
    try:
        writer.start(deadline())
        yield writer
    finally:
        writer.close()
