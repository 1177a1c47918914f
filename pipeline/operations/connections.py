"""Connections to the servers of an installation, each opened at first use."""

from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import KafkaServers, kafka_servers
from brokers.kafka_interface import (
    KafkaCluster,
    RecordReader,
    RecordWriter,
    TopicAdmin,
    TransactionWriter,
)
from brokers.log_reader import LogReader
from brokers.versioned_store import VersionedStore
from brokers.zookeeper import ZooKeeperStore, zookeeper_servers
from pipeline.catalog.catalog import Catalog
from pipeline.clock import Clock
from pipeline.deploy.apply import Servers
from pipeline.deploy.life import random_life
from pipeline.ids import ParticipantId, TopicName
from pipeline.names import FragmentNames, Znodes
from pipeline.planner.plan import Fragment
from pipeline.replay.write import TRANSACTION_S
from pipeline.settings import Settings
from schemas.client import RegistryClient
from schemas.transport import registry_address

if TYPE_CHECKING:
    from pipeline.spark.run.replay import Recomputer

CONNECT_TIMEOUT_S = 5.0
CALL_TIMEOUT_S = 20.0
"""Timeout of calls that take a server long, such as creating many topics."""


class Connections:
    """Connections to Kafka, ZooKeeper and the schema registry; `close` ends all of them.

    Each property and method raises `UnavailableError` when its server does not answer. Not
    thread-safe.

    Args:
        settings: addresses and logins of the servers.
        clock: of timeouts.
        within_s: timeout of the first response of a server.
    """

    def __init__(
        self, settings: Settings, clock: Clock, within_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        self._settings = settings
        self._within_s = within_s
        self._clock = clock
        self._undo = ExitStack()

    @property
    def participant(self) -> ParticipantId:
        """The participant for which commands act."""
        return ParticipantId(self._settings.participant)

    @cached_property
    def store(self) -> VersionedStore:
        """ZooKeeper, which stores the catalog and our own schema registry."""
        store = ZooKeeperStore.connect(zookeeper_servers(self._settings), self._within_s)
        self._undo.callback(store.close)
        return store

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog in ZooKeeper; created if it does not exist."""
        # The chroot is part of the connect string.
        catalog = Catalog(self.store, Znodes(""))
        catalog.format.ensure()
        return catalog

    @cached_property
    def topics(self) -> TopicAdmin:
        """Kafka's topics and groups."""
        return KafkaAdmin(self._brokers, CALL_TIMEOUT_S, self._clock)

    @cached_property
    def kafka(self) -> KafkaCluster:
        """Readers and writers of Kafka."""
        return RemoteKafka(self._brokers, self._clock)

    @cached_property
    def _brokers(self) -> KafkaServers:
        """The brokers, after a first request has succeeded.

        If they are down, it fails within the connect timeout, not within that of calls.
        """
        found = kafka_servers(self._settings)
        KafkaAdmin(found, self._within_s).cluster_id()
        return found

    def lookups(self, within_s: float) -> tuple[TopicAdmin, LogReader]:
        """Topics and last records, with a timeout of their own for each request."""
        servers = kafka_servers(self._settings)
        admin = KafkaAdmin(servers, within_s, self._clock)
        admin.cluster_id()
        return admin, LogReader(RemoteKafka(servers, self._clock), within_s)

    @cached_property
    def registry(self) -> RegistryClient:
        """The schema registry."""
        client = RegistryClient(registry_address(self._settings), self._within_s)
        self._undo.callback(client.close)
        return client

    @cached_property
    def servers(self) -> Servers:
        """The servers as arguments of a deploy."""
        log = LogReader(self.kafka, CALL_TIMEOUT_S)
        return Servers(self.catalog, self.topics, self.registry, self._clock, log, random_life)

    def reader(self) -> RecordReader:
        """A reader of committed records."""
        reader = self.kafka.reader(self._within_s)
        self._undo.callback(reader.close)
        return reader

    def producer(self, within_s: float = CALL_TIMEOUT_S) -> RecordWriter:
        """A producer of single records; `within_s`: time limit of a delivery."""
        producer = self.kafka.producer(within_s)
        self._undo.callback(producer.close)
        return producer

    def redriver(self, names: FragmentNames) -> TransactionWriter:
        """Transactional writer of a redrive; its start fences all others."""
        writer = self.kafka.transactions(names.redriver)
        self._undo.callback(writer.close)
        return writer

    def replayer(self, names: FragmentNames, into: TopicName) -> TransactionWriter:
        """Transactional writer of a replay into a topic; its start fences all others."""
        writer = self.kafka.transactions(names.replayer(into), 1000 * TRANSACTION_S)
        self._undo.callback(writer.close)
        return writer

    def recomputer(self, fragment: Fragment, topic_ids: Mapping[TopicName, str]) -> "Recomputer":
        """Recomputer of a fragment's results, in a Spark session of its own."""
        # The import of PySpark takes seconds; only this method needs it.
        from pipeline.spark.run import replay  # noqa: PLC0415

        servers = replay.Servers(self._brokers, self.topics, self.registry)
        opened = replay.open_recomputer(self._settings, servers, fragment, topic_ids)
        return self._undo.enter_context(opened)

    def close(self) -> None:
        """Close all connections."""
        self._undo.close()
