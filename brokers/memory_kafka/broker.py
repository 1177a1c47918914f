"""The broker of an in-memory Kafka: topics, records, transactions."""

import threading

from brokers.kafka_interface import (
    ANY_PARTITION,
    Isolation,
    NoSuchTopicError,
    OffsetGoneError,
)
from brokers.memory_kafka.log import MemoryPartition, MemoryTopic
from brokers.partitioner import partition_of
from brokers.records import Headers, KafkaRecord
from pipeline.clock import Clock
from pipeline.errors import FencedError
from pipeline.ids import Millis, Offset, TopicName, TransactionalId


class MemoryBroker:
    """State that the clients of a cluster share; thread-safe. `clock` gives timestamps."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.topics: dict[TopicName, MemoryTopic] = {}
        self.lock = threading.RLock()
        self._epochs: dict[TransactionalId, int] = {}
        self._written: dict[TransactionalId, list[MemoryPartition]] = {}

    # --- records ----------------------------------------------------------------------------------

    def append(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int | None = None,
        headers: Headers = (),
        partition: int = ANY_PARTITION,
    ) -> KafkaRecord:
        """Write one record.

        Without a timestamp it gets the present time; without a partition and a key, partition 0.

        Raises:
            NoSuchTopicError: the topic or the partition does not exist.
        """
        with self.lock:
            found = self._topic(topic)
            if partition == ANY_PARTITION:
                partition = 0 if key is None else partition_of(key, len(found.partitions))
            log = self.partition(topic, partition).log
            if timestamp_ms is None or found.config["message.timestamp.type"] == "LogAppendTime":
                timestamp_ms = self.clock.now_ms()
            at, at_ms = Offset(len(log)), Millis(timestamp_ms)
            record = KafkaRecord(topic, partition, at, at_ms, key, value, tuple(headers))
            log.append(record)
        return record

    def read(
        self, topic: TopicName, partition: int, start: Offset, isolation: Isolation
    ) -> tuple[list[KafkaRecord], Offset]:
        """The records of a partition from an offset on, and their end offset.

        Raises:
            NoSuchTopicError: the topic or the partition does not exist.
            OffsetGoneError: the offset is not in the partition.
        """
        with self.lock:
            log = self.partition(topic, partition)
            if not log.start <= start <= log.end(Isolation.UNCOMMITTED):
                raise offset_gone(topic, partition)
            end = log.end(isolation)
            return log.read(start, end, isolation), max(start, end)

    def partition(self, topic: TopicName, number: int) -> MemoryPartition:
        """The log of a partition.

        Raises:
            NoSuchTopicError: the topic or the partition does not exist.
        """
        partitions = self._topic(topic).partitions
        if not 0 <= number < len(partitions):
            raise NoSuchTopicError(
                "the partition does not exist", place=f"topic {topic}, partition {number}"
            )
        return partitions[number]

    # --- transactions -----------------------------------------------------------------------------

    def next_epoch(self, transactional_id: TransactionalId) -> int:
        """Fence every older producer and abort its transaction; returns the new epoch."""
        with self.lock:
            self._end(transactional_id, committed=False)
            self._epochs[transactional_id] = epoch = self._epochs.get(transactional_id, 0) + 1
        return epoch

    def enlist(self, transactional_id: TransactionalId, record: KafkaRecord) -> None:
        """Make a record part of the open transaction of a transactional id."""
        log = self.partition(record.topic, record.partition)
        if transactional_id not in log.open:
            self._written.setdefault(transactional_id, []).append(log)
        log.enlist(transactional_id, record.offset)

    def end_transaction(
        self, transactional_id: TransactionalId, epoch: int, *, committed: bool
    ) -> None:
        """Commit or abort the transaction of a producer."""
        with self.lock:
            self.check_epoch(transactional_id, epoch)
            self._end(transactional_id, committed=committed)

    def check_epoch(self, transactional_id: TransactionalId, epoch: int) -> None:
        """Raise `FencedError` if there is a newer producer of this transactional id."""
        if self._epochs.get(transactional_id) != epoch:
            raise FencedError(
                "another instance has taken over", place=f"transactions of {transactional_id}"
            )

    def _end(self, transactional_id: TransactionalId, *, committed: bool) -> None:
        for log in self._written.pop(transactional_id, []):
            log.end_transaction(transactional_id, self.clock.now_ms(), committed=committed)

    def _topic(self, name: TopicName) -> MemoryTopic:
        found = self.topics.get(name)
        if found is None:
            raise no_such_topic(name)
        return found


def no_such_topic(topic: TopicName) -> NoSuchTopicError:
    """The error about a topic that does not exist."""
    return NoSuchTopicError("the topic does not exist", place=f"topic {topic}")


def offset_gone(topic: TopicName, partition: int) -> OffsetGoneError:
    """The error about an offset that is not in a partition."""
    return OffsetGoneError(
        "the offset is not in the topic any more", place=f"topic {topic}, partition {partition}"
    )
