"""A stable topic and a tentative one in memory, and faults of their cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from brokers.kafka_interface import Isolation, NotNowError
from brokers.memory_kafka.reader import MemoryReader
from brokers.memory_kafka.writers import MemoryProducer, MemoryTransactions
from brokers.records import Ends, Headers, KafkaRecord
from pipeline.clock import Deadline
from pipeline.errors import RetryError
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName, TransactionalId
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID, WRITTEN_TO
from pipeline.spark.run.tentative_topic import Places, TentativeTopic
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import DoneMark, TentativeRecord, TentativeResult, Undo, decode
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import Leaderless, create
from tests.unit.spark.batch.test_results import results

STABLE, TENTATIVE = TopicName("out"), TopicName("out.tentative")
PARTITIONS = 2
NOTHING: Ends = {}


class KilledError(Exception):
    """The process is killed."""


class FaultyKafka(Leaderless):
    """Kafka whose producers can be killed, or fail to deliver, after so many records."""

    def __init__(self) -> None:
        super().__init__(TwinClock())
        create(self, STABLE, TENTATIVE, partitions=PARTITIONS)
        self.kill_after: int | None = None
        self.lose_after: int | None = None
        self.sent = 0
        self.stalled: TopicName | None = None
        self.closed: list[object] = []

    def producer(self, timeout_s: float) -> MemoryProducer:
        """One with these faults."""
        del timeout_s
        return _Producer(self)

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = 1,
    ) -> MemoryReader:
        """One that reads beyond its ends, and may stall after its first record."""
        del fetch_wait_ms
        return _Reader(self, timeout_s, isolation)


class _Producer(MemoryProducer):
    def __init__(self, kafka: FaultyKafka) -> None:
        super().__init__(kafka)
        self._kafka = kafka
        self._lost = 0

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
        """Send it, or not."""
        kafka = self._kafka
        if kafka.kill_after is not None and kafka.sent >= kafka.kill_after:
            raise KilledError
        if kafka.lose_after is not None and kafka.sent >= kafka.lose_after:
            self._lost += 1
            return
        kafka.sent += 1
        super().send(
            topic, key, value, headers=headers, timestamp_ms=timestamp_ms, partition=partition
        )

    def flush(self, timeout_s: float) -> None:
        """Fail if a record was lost."""
        super().flush(timeout_s)
        lost, self._lost = self._lost, 0
        if lost:
            raise RetryError(f"{lost} records were not delivered")


class _Reader(MemoryReader):
    def __init__(self, kafka: FaultyKafka, timeout_s: float, isolation: Isolation) -> None:
        super().__init__(kafka, timeout_s, isolation)
        self._kafka = kafka

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """As the driver, whose position may be beyond the ends afterwards."""
        for topic, offsets in list(self._positions.items()):
            found = list(super().read_to(ends))
            for number, record in enumerate(found):
                if topic == self._kafka.stalled and number:
                    raise NotNowError("nothing new came")
                yield record
            for partition in offsets:
                offsets[partition] = Offset(
                    len(self._kafka.topics[topic].partitions[partition].log)
                )


@dataclass
class World:
    """A stable topic, and the tentative one beside it."""

    kafka: FaultyKafka = field(default_factory=FaultyKafka)
    number: Iterator[int] = field(default_factory=lambda: count(1))

    def opened(self, ends: Ends = NOTHING) -> TentativeTopic:
        """The topic in a process that has just begun."""
        topic = TentativeTopic(Places(STABLE, self.id, TENTATIVE), self.kafka, self.kafka)
        topic.resume(ends)
        return topic

    @property
    def id(self) -> TopicId:
        """Kafka's id of the stable topic."""
        return TopicId(self.kafka.topics[STABLE].topic_id)

    @property
    def ends(self) -> Ends:
        """The ends of the stable topic."""
        return self.kafka.end_offsets((STABLE,))

    def stable(
        self, name: str, at_ms: int, value: str | None = "v", *, partition: int = 0, **more: str
    ) -> None:
        """Write a stable result."""
        headers: Headers = (
            (WRITTEN_TO, more.get("topic", self.id).encode()),
            (RESULT_ID, name.encode()),
            *(((CORRECTION, b"1"),) if "correction" in more else ()),
        )
        self.kafka.append(
            STABLE,
            name.encode(),
            None if value is None else value.encode(),
            timestamp_ms=at_ms,
            headers=headers,
            partition=partition,
        )

    def transaction(self, name: str, at_ms: int) -> MemoryTransactions:
        """Write a stable result in a transaction that is open."""
        writer = MemoryTransactions(self.kafka, TransactionalId(f"t-{next(self.number)}"))
        writer.start(Deadline.after(self.kafka.clock, 1, "starting"))
        writer.begin()
        headers: Headers = ((WRITTEN_TO, self.id.encode()), (RESULT_ID, name.encode()))
        writer.send(STABLE, None, b"v", timestamp_ms=at_ms, headers=headers, partition=0)
        return writer

    def commit(self, writer: MemoryTransactions) -> None:
        """End a transaction."""
        writer.commit(Deadline.after(self.kafka.clock, 1, "committing"))

    @property
    def raw(self) -> list[KafkaRecord]:
        """The records of the tentative topic, one partition after the other."""
        partitions = self.kafka.topics[TENTATIVE].partitions
        return [one for log in partitions for one in log.log]

    @property
    def written(self) -> list[TentativeRecord]:
        """The same, decoded; all are Medusa's."""
        found = [decode(one, self.id) for one in self.raw]
        return [one for one in found if isinstance(one, TentativeResult | Undo | DoneMark)]

    @property
    def undone(self) -> list[bytes]:
        """The ids of the undos."""
        return [one.id for one in self.written if isinstance(one, Undo)]

    @property
    def done(self) -> list[tuple[str, int]]:
        """Generations and partitions of the done marks."""
        marks = [one for one in self.written if isinstance(one, DoneMark)]
        return [(str(one.generation), one.partition) for one in marks]


def of_fork(
    generation: Generation, *rows: tuple[str, int] | tuple[str, int, str]
) -> list[TentativeResult]:
    """Results of a fork: id, event time, value."""
    names = [row[0].encode() for row in rows]
    values = [row[2] if len(row) == 3 else "v" for row in rows]
    made = [
        (name, value.encode(), row[1], None)
        for name, value, row in zip(names, values, rows, strict=True)
    ]
    found = results(*made, ids=tuple(names)).identified(PARTITIONS)
    return [
        TentativeResult(key, value, Millis(at_ms), partition, result or b"", generation)
        for key, value, at_ms, partition, result in found
    ]


def published(
    topic: TentativeTopic, *rows: tuple[str, int] | tuple[str, int, str], epoch: int = 1
) -> Generation:
    """The generation of a fork that has published these and has ended."""
    generation = topic.begin(Epoch(epoch), NOTHING)
    topic.publish(generation, of_fork(generation, *rows))
    topic.end(generation)
    return generation


def settle(topic: TentativeTopic, promised_ms: int) -> None:
    """Settle up to a promise."""
    topic.settle(Millis(promised_ms))


def life(world: World, promises: tuple[int, ...] = (20, 40)) -> None:
    """Two forks, and their settlement."""
    topic = world.opened()
    first = topic.begin(Epoch(1), NOTHING)
    topic.publish(first, of_fork(first, ("a", 10), ("b", 10), ("c", 11), ("d", 30)))
    topic.end(first)
    world.stable("a", 10)
    world.stable("b", 10, "another", partition=1)
    settle(topic, promises[0])
    second = topic.begin(Epoch(1), NOTHING)
    topic.publish(second, of_fork(second, ("d", 30, "new"), ("e", 31), ("f", 31)))
    topic.end(second)
    world.stable("d", 30, "new", partition=1)
    world.stable("e", 31)
    settle(topic, promises[1])
