"""Kafka in memory, for unit tests."""

from collections.abc import Iterable

from brokers.kafka_interface import Isolation, Place
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.log import MemoryPartition
from brokers.records import Ends, KafkaRecord, NewTopicSpec
from pipeline.clock import Clock
from pipeline.ids import Offset, TopicName
from pipeline.system_clock import SystemClock


class Leaderless(MemoryKafka):
    """A cluster in which partitions of some topics have no leader now."""

    def __init__(self, clock: Clock | None = None) -> None:
        super().__init__(clock or SystemClock())
        self.leaderless: tuple[str, ...] = ()

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """Without those topics."""
        return super().end_offsets(self._answering(topics), isolation)

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """Without those topics."""
        return super().start_offsets(self._answering(topics))

    def leader_answers(self, place: Place) -> bool:
        """Not for those topics."""
        return place[0] not in self.leaderless

    def _answering(self, topics: Iterable[TopicName]) -> list[TopicName]:
        return [topic for topic in topics if topic not in self.leaderless]


def create(kafka: MemoryKafka, *names: str, partitions: int = 1) -> None:
    """Create topics."""
    kafka.create_topics(tuple(NewTopicSpec(TopicName(name), partitions, 1) for name in names))


def with_topics(
    names: Iterable[str], partitions: int = 1, clock: Clock | None = None
) -> MemoryKafka:
    """A cluster with some topics."""
    kafka = MemoryKafka(clock or SystemClock())
    create(kafka, *names, partitions=partitions)
    return kafka


def fill(kafka: MemoryKafka, name: str, start: int, end: int) -> None:
    """Fill every partition of a topic with the offsets from `start` on, up to `end`."""
    topic = TopicName(name)
    for partition in range(len(kafka.topics[topic].partitions)):
        for _ in range(end):
            kafka.append(topic, None, b"", partition=partition)
        kafka.delete_records(topic, {partition: Offset(start)})


def grow(kafka: MemoryKafka, name: str, partitions: int) -> None:
    """Add partitions to a topic."""
    there = kafka.topics[TopicName(name)].partitions
    there += [MemoryPartition() for _ in range(partitions - len(there))]


def records(kafka: MemoryKafka, name: str) -> list[KafkaRecord]:
    """The committed records of a topic, one partition after the other."""
    partitions = kafka.topics[TopicName(name)].partitions
    return [record for one in partitions for record in one.read(0, one.end())]
