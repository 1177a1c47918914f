"""In-memory Kafka cluster: administration of topics and groups, readers, writers."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import (
    FETCH_WAIT_MS,
    TRANSACTION_MS,
    Describing,
    GroupWriter,
    Isolation,
    NoSuchTopicError,
    NotNowError,
    Place,
)
from brokers.memory_kafka.broker import MemoryBroker, no_such_topic, offset_gone
from brokers.memory_kafka.ends import MemoryEnds
from brokers.memory_kafka.log import MemoryPartition, MemoryTopic
from brokers.memory_kafka.reader import MemoryReader
from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from brokers.records import Ends, NewTopicSpec, TopicDescription
from pipeline.clock import Clock
from pipeline.errors import MedusaError, RefusedError, UnavailableError
from pipeline.ids import GroupName, Millis, Offset, TopicName, TransactionalId

DEFAULTS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "1",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
}
"""Kafka's defaults of those topic settings that Medusa reads."""
DECIDED_WITHIN_S: Final = 1.0
"""How long `await_decided` waits for an open transaction."""
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")


class MemoryKafka(MemoryBroker):
    """A cluster; a `TopicAdmin` and a `KafkaCluster`. Thread-safe.

    Written and committed records are visible at once, and only `delete_records` removes records. A
    test that needs a fault overrides a method.

    Args:
        clock: gives timestamps; clients that wait sleep on it.
        defaults: settings of topics that differ from `DEFAULTS`.
    """

    def __init__(self, clock: Clock, defaults: Mapping[str, str] | None = None) -> None:
        super().__init__(clock)
        self.groups: dict[GroupName, Mapping[TopicName, Mapping[int, Offset]]] = {}
        self.defaults = {**DEFAULTS, **(defaults or {})}
        self._created = 0

    # --- clients ----------------------------------------------------------------------------------

    def group_writer(self, group: GroupName) -> GroupWriter:
        """A writer whose requests are answered at once."""
        return _MemoryGroup(self, group)

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> MemoryReader:
        """A reader."""
        del fetch_wait_ms
        return MemoryReader(self, timeout_s, isolation)

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = TRANSACTION_MS
    ) -> MemoryTransactions:
        """A transactional writer, not started; its transactions have no timeout."""
        del transaction_ms
        return MemoryTransactions(self, transactional_id)

    def producer(self, timeout_s: float) -> MemoryProducer:
        """A writer of single records."""
        del timeout_s
        return MemoryProducer(self)

    def ends_reader(self) -> MemoryEnds:
        """A reader of end offsets; `leader_answers` decides which are missing."""
        return MemoryEnds(self, self.leader_answers)

    def leader_answers(self, place: Place) -> bool:
        """Whether the leader of a partition answers readers of end offsets: always."""
        del place
        return True

    # --- topics and groups ------------------------------------------------------------------------

    def topic_names(self) -> tuple[TopicName, ...]:
        """All topics, sorted."""
        return tuple(sorted(self.topics))

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create the topics that do not exist."""
        return tuple(spec.name for spec in topics if self._create(spec))

    def delete_topics(self, topics: Iterable[TopicName]) -> tuple[TopicName, ...]:
        """Delete topics; returns the names of those that existed."""
        with self.lock:
            return tuple(name for name in topics if self.topics.pop(name, None) is not None)

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Id, number of partitions and replication of those topics that exist."""
        return {
            name: TopicDescription(name, topic.topic_id, len(topic.partitions), topic.replication)
            for name, topic in self._existing(topics)
        }

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """A request that is answered at once."""
        found = self.describe(topics)
        return Describing(done=lambda: True, result=lambda: found)

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """The effective settings of those topics that exist."""
        return {name: dict(topic.config) for name, topic in self._existing(topics)}

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """End of each partition of those topics that exist."""
        return self._offsets(topics, lambda partition: partition.end(isolation))

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Ends of the partitions of one topic."""
        found = self.end_offsets((topic,), isolation).get(topic)
        if found is None:
            raise no_leader(f"topic {topic}")
        if partitions > len(found):
            raise NotNowError("the end offsets are not available now", place=f"topic {topic}")
        return {partition: found[partition] for partition in range(partitions)}

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The oldest offset of each partition of those topics that exist."""
        return self._offsets(topics, lambda partition: partition.start)

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> Mapping[int, Offset]:
        """Per partition the offset of the first record at or after a time, or the committed end."""
        found = self._offsets((topic,), lambda partition: partition.first_at(time_ms))
        if topic not in found:
            raise no_such_topic(topic)
        return found[topic]

    def await_decided(self, topic: TopicName) -> bool:
        """Whether all records written so far are committed or aborted; waits once for that."""
        written = self.end_offsets((topic,), Isolation.UNCOMMITTED).get(topic)
        if written is not None and self._stable(topic) != written:
            self.clock.sleep(DECIDED_WITHIN_S)
        return written is not None and all(
            self._stable(topic).get(partition, -1) >= end for partition, end in written.items()
        )

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Delete the records below an offset in each of some partitions."""
        with self.lock:
            for number, offset in before.items():
                try:
                    partition = self.partition(topic, number)
                except NoSuchTopicError as error:
                    raise no_leader(error.place) from error
                if offset > partition.end(Isolation.UNCOMMITTED):
                    raise offset_gone(topic, number)
                partition.start = max(partition.start, offset)

    def delete_group(self, group: GroupName) -> bool:
        """Delete a group; False if there is none of this name."""
        with self.lock:
            return self.groups.pop(group, None) is not None

    def _create(self, spec: NewTopicSpec) -> bool:
        if not _NAME.fullmatch(spec.name):
            raise RefusedError(
                "Kafka does not accept the name of the topic", place=f"topic {spec.name}"
            )
        if spec.partitions < 1:
            raise RefusedError(
                "Kafka does not accept that many partitions", place=f"topic {spec.name}"
            )
        with self.lock:
            if spec.name in self.topics:
                return False
            self._created += 1
            self.topics[spec.name] = MemoryTopic(
                f"id-{self._created}",
                {**self.defaults, **dict(spec.config)},
                [MemoryPartition() for _ in range(spec.partitions)],
                max(1, spec.replication),  # -1: the default of the brokers
            )
            return True

    def _existing(self, topics: Iterable[TopicName]) -> list[tuple[TopicName, MemoryTopic]]:
        return [(name, self.topics[name]) for name in topics if name in self.topics]

    def _offsets(
        self, topics: Iterable[TopicName], of: Callable[[MemoryPartition], Offset]
    ) -> dict[TopicName, dict[int, Offset]]:
        with self.lock:
            return {
                name: {number: of(one) for number, one in enumerate(topic.partitions)}
                for name, topic in self._existing(topics)
            }

    def _stable(self, topic: TopicName) -> Mapping[int, Offset]:
        return self.end_offsets((topic,)).get(topic, {})


def no_leader(place: str) -> UnavailableError:
    """The driver's error for a request to a partition without a leader."""
    return UnavailableError("Kafka does not answer (no leaders found)", place=place)


@dataclass(frozen=True, slots=True)
class _MemoryGroup:
    """A `GroupWriter`."""

    kafka: MemoryKafka
    group: GroupName

    def commit(self, offsets: Ends, done: Callable[[MedusaError | None], None]) -> None:
        """Set the offsets."""
        with self.kafka.lock:
            self.kafka.groups[self.group] = {**self.kafka.groups.get(self.group, {}), **offsets}
        done(None)

    def poll(self) -> None:
        """Nothing is pending."""

    def close(self) -> None:
        """There is no connection."""
