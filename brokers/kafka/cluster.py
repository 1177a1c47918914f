"""Readers and writers of a real Kafka cluster."""

from dataclasses import dataclass, field

from brokers.kafka.ends_requests import EndsRequests
from brokers.kafka.group_commits import GroupCommits
from brokers.kafka.leader_ends import LeaderEnds
from brokers.kafka.leaders import LeaderEpochs
from brokers.kafka.producer import PlainProducer
from brokers.kafka.reader import TopicReader
from brokers.kafka.servers import Brokers
from brokers.kafka.transactions import TransactionalWriter
from brokers.kafka_interface import FETCH_WAIT_MS, TRANSACTION_MS, Isolation
from pipeline.clock import Clock
from pipeline.ids import GroupName, TransactionalId
from pipeline.system_clock import SystemClock


@dataclass(frozen=True, slots=True)
class RemoteKafka:
    """A `KafkaCluster` at these brokers; the clock measures timeouts."""

    brokers: Brokers
    clock: Clock = field(default_factory=SystemClock)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs, repr=False, compare=False)

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> TopicReader:
        """A new consumer."""
        return TopicReader(
            self.brokers,
            timeout_s,
            isolation=isolation,
            fetch_wait_ms=fetch_wait_ms,
            clock=self.clock,
        )

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = TRANSACTION_MS
    ) -> TransactionalWriter:
        """A new transactional producer."""
        return TransactionalWriter(self.brokers, transactional_id, transaction_ms)

    def producer(self, timeout_s: float) -> PlainProducer:
        """A new idempotent producer."""
        return PlainProducer(self.brokers, timeout_s, self.clock)

    def group_writer(self, group: GroupName) -> GroupCommits:
        """A consumer that reads nothing."""
        return GroupCommits(self.brokers, group)

    def ends_reader(self) -> LeaderEnds:
        """A new administrative connection, to be used by one thread."""
        return LeaderEnds(lambda: EndsRequests(self.brokers), self.clock, self.epochs)
