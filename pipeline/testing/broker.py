"""Topics in memory, and what a sink writes through: as much of Kafka as a lane needs. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from brokers.kafka.admin import Isolation
from brokers.kafka.transactions import Headers
from brokers.records import KafkaRecord, TopicDescription
from pipeline.clock import Deadline
from pipeline.ids import Millis, Offset, SchemaHandle, TopicName
from pipeline.spark.batch.results import Record


@dataclass
class Broker:
    """Topics by name. One has as many partitions as `partitions` says, or one."""

    partitions: Mapping[TopicName, int] = field(default_factory=dict)
    _topics: dict[TopicName, list[list[KafkaRecord]]] = field(default_factory=dict)

    def partitions_of(self, topic: TopicName) -> int:
        """How many partitions a topic has."""
        return self.partitions.get(topic, 1)

    def append(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        *,
        partition: int = 0,
        headers: Headers = (),
    ) -> None:
        """Add one record."""
        there = self._of(topic)[partition]
        there.append(
            KafkaRecord(
                topic,
                partition,
                Offset(len(there)),
                Millis(timestamp_ms),
                key,
                value,
                tuple(headers),
            )
        )

    def ends(self, topic: TopicName) -> dict[int, Offset]:
        """Where the partitions of a topic end."""
        return {p: Offset(len(records)) for p, records in enumerate(self._of(topic))}

    def since(self, topic: TopicName, partition: int, offset: int) -> list[KafkaRecord]:
        """The records of a partition from an offset on."""
        return self._of(topic)[partition][offset:]

    def _of(self, topic: TopicName) -> list[list[KafkaRecord]]:
        return self._topics.setdefault(topic, [[] for _ in range(self.partitions_of(topic))])


@dataclass
class Transaction:
    """Writes records that are visible when they are committed, as `Transactions` of a sink says.

    What a lane writes are topics with one partition.
    """

    broker: Broker
    _open: list[Callable[[], None]] = field(default_factory=list)

    def begin(self) -> None:
        """Open a transaction."""
        self._open = []

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = -1,
    ) -> None:
        """Add one record."""
        del partition
        self._open.append(
            lambda: self.broker.append(topic, key, value, timestamp_ms, headers=headers)
        )

    def look_at(self, topic: TopicName) -> None:
        """Topics in memory do not grow."""

    def send_many(self, topic: TopicName, records: Iterable[Record], headers: Headers = ()) -> int:
        """Add many records, each with the same headers; returns how many."""
        before = len(self._open)
        for key, value, timestamp_ms, _ in records:
            self.send(topic, key, value, timestamp_ms=timestamp_ms, headers=headers)
        return len(self._open) - before

    def commit(self, deadline: Deadline) -> None:
        """Make it visible."""
        del deadline
        for write in self._open:
            write()
        self._open = []

    def abort(self, deadline: Deadline) -> None:
        """Give it up."""
        del deadline
        self._open = []


@dataclass(frozen=True, slots=True)
class Plain:
    """Writes records at once, as `Records` of a sink says, and tells where topics end."""

    broker: Broker
    undelivered: int = 0

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: Millis | None = None,
        partition: int = -1,
    ) -> None:
        """Add one record."""
        del partition
        self.broker.append(topic, key, value, timestamp_ms or 0)

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Topics whose names are their ids."""
        return {
            topic: TopicDescription(topic, topic, len(self.broker.ends(topic))) for topic in topics
        }

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Where the partitions of a topic end."""
        del partitions, isolation
        return self.broker.ends(topic)

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation
    ) -> Mapping[TopicName, Mapping[int, Offset]]:
        """Where topics end."""
        del isolation
        return {topic: self.broker.ends(topic) for topic in topics}


class Nothing:
    """What a sink needs of the world and a test has no use for."""

    answered = False

    def last(self, topic: TopicName) -> TopicDescription | None:
        """No topic ever changes."""
        del topic
        return None

    def follow(self, positions: object) -> None:
        """No consumer group mirrors positions."""

    def ask(self) -> Callable[[], None]:
        """No topic is ever made again."""
        return lambda: None

    def existing(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Every schema is known from the start."""
        del handles
        return ()

    def look_up(self, handles: tuple[SchemaHandle, ...]) -> tuple[SchemaHandle, ...]:
        """Every schema is known from the start."""
        del handles
        return ()

    def start(self, job: Callable[[], None]) -> None:
        """Run at once what a node runs beside the query."""
        job()

    def wait(self) -> None:
        """Nothing runs beside the query."""
