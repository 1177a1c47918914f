"""Kafka in memory for histories: killed processes write nothing; commits are observed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from brokers.log_reader import LogReader
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.log import MemoryPartition, MemoryTopic
from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from brokers.records import Headers, KafkaRecord, NewTopicSpec
from pipeline.clock import Clock, Deadline
from pipeline.errors import RetryError
from pipeline.ids import Millis, Offset, TopicName, TransactionalId
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.lanes.start.decision import Rebuild
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import FragmentNames
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.marker_tail import MarkerTail
from pipeline.spark.run.rebuild import Log, Rebuilding
from pipeline.trimming import schedule
from tests.histories.turns import CrashedError, Turn, pause, wait


class Topics(Protocol):
    """The topics of a cluster by name, and by id including deleted ones."""

    topics: dict[TopicName, MemoryTopic]
    by_id: dict[str, MemoryTopic]


def topic_of(kafka: Topics, name: TopicName) -> MemoryTopic:
    """A topic that exists."""
    found = kafka.topics.get(name)
    if found is None:
        raise RetryError("the topic does not exist", place=f"topic {name}")
    return found


def log(of: MemoryTopic, partition: int) -> MemoryPartition:
    """The log of a partition; a missing one is empty."""
    there = partition < len(of.partitions)
    return of.partitions[partition] if there else MemoryPartition()


@dataclass(frozen=True, slots=True)
class Impatient:
    """A clock without waits: waiting calls time out at once and are retried later."""

    clock: Clock

    def now_ms(self) -> Millis:
        """The world's."""
        return self.clock.now_ms()

    def monotonic_s(self) -> float:
        """The world's."""
        return self.clock.monotonic_s()

    def sleep(self, seconds: float) -> None:
        """Return at once."""


class Kafka(MemoryKafka):
    """The cluster of a history.

    Args:
        clock: the broker's.
        append_time: whether topics use log append time by default.
    """

    def __init__(self, clock: Clock, *, append_time: bool = False) -> None:
        stamps = {"message.timestamp.type": "LogAppendTime"} if append_time else {}
        super().__init__(Impatient(clock), stamps)
        self.by_id: dict[str, MemoryTopic] = {}
        self.committed: Callable[[Transaction], None] = lambda _: None
        self.records: dict[TransactionalId, list[KafkaRecord]] = {}
        """Records of each writer's open or last transaction."""

    def create(self, name: str, partitions: int) -> None:
        """Create a topic."""
        self.create_topics((NewTopicSpec(TopicName(name), partitions, 1),))

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """As it is done, and remembered."""
        created = super().create_topics(topics)
        self.by_id |= {self.topics[name].topic_id: self.topics[name] for name in created}
        return created

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Delete records after other threads had a turn; a killed process deletes none."""
        if Turn.current is not None:
            pause()
            check_alive(Turn.current)
        super().delete_records(topic, before)

    def grow(self, name: TopicName) -> None:
        """Add a partition."""
        self.topics[name].partitions.append(MemoryPartition())

    def enlist(self, transactional_id: TransactionalId, record: KafkaRecord) -> None:
        """As it is done, and remembered."""
        super().enlist(transactional_id, record)
        self.records.setdefault(transactional_id, []).append(record)

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = 0
    ) -> "Transaction":
        """The writer of a process."""
        del transaction_ms
        return Transaction(self, transactional_id)

    def producer(self, timeout_s: float) -> "Producer":
        """The writer of a process."""
        del timeout_s
        return Producer(self)


class Transaction(MemoryTransactions):
    """The transactional writer of a process, which may be killed."""

    def __init__(self, kafka: Kafka, transactional_id: TransactionalId) -> None:
        super().__init__(kafka, transactional_id)
        self.id, self.turn = transactional_id, Turn.current
        self._kafka = kafka

    @property
    def records(self) -> list[KafkaRecord]:
        """Records of the last transaction."""
        return self._kafka.records.get(self.id, [])

    def start(self, deadline: Deadline) -> None:
        """Fence every older instance, then yield to other threads."""
        super().start(deadline)
        pause()

    def begin(self) -> None:
        """Open a transaction."""
        check_alive(self.turn)
        super().begin()
        self._kafka.records[self.id] = []

    def commit(self, deadline: Deadline) -> None:
        """Commit it, and notify the observer."""
        check_alive(self.turn)
        super().commit(deadline)
        self._kafka.committed(self)


class Producer(MemoryProducer):
    """The producer of a process, which may be killed."""

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka)
        self._turn = Turn.current
        self._unflushed = 0

    def flush(self, timeout_s: float) -> None:
        """As it is done."""
        self._unflushed = 0
        super().flush(timeout_s)

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Write one record."""
        if any(name == RESULT_ID for name, _ in headers):
            self._unflushed += 1
            if self._unflushed & (self._unflushed - 1) == 0:  # fewer and fewer: there are many
                pause()  # its process may be killed, or fenced, between two results
        if self._turn is None or not self._turn.dead:
            super().send(
                topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
            )


def check_alive(turn: Turn | None) -> None:
    """End the thread of a killed process."""
    if turn is not None and turn.dead:
        raise CrashedError


class YieldingReader(LogReader):
    """Reader of a topic's newest records that first yields to other threads."""

    def newest(self, topic: TopicName, count: int) -> tuple[KafkaRecord, ...]:
        """The last records of partition 0."""
        pause()
        return LogReader(self.kafka, self.timeout_s).newest(topic, count)


class YieldingTail(MarkerTail):
    """Reader of the markers of a followed lane that yields to other threads where it waits."""

    def next(self, within_s: float) -> tuple[CommitMarker, ...]:
        """The markers after those that were read."""
        if within_s:
            wait()
        return super().next(within_s)


class NotedLog(Log):
    """The log of a rebuild; where the dead letters begin that it reads is stored for the checks."""

    def prepare(self, start: Rebuild, lowered: Lowered, names: FragmentNames) -> Rebuilding:
        """See `Log`."""
        prepared = super().prepare(start, lowered, names)
        if Turn.current is not None:
            letters = names.dead_letters
            Turn.current.facts["letters from"] = self.admin.start_offsets((letters,))[letters]
        return prepared


class Trimmer(schedule.Trimmer):
    """Removes records in the lane's thread."""

    def trim_if_due(self) -> None:
        """Remove records, if due."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._due_s:
            self._due_s = now_s + self._every_s
            self.trim()
