"""Reader of an in-memory Kafka."""

from collections.abc import Iterator
from types import TracebackType
from typing import Self

from brokers.kafka_interface import BEGINNING, POLL_RECORDS_MAX, Isolation, NotNowError
from brokers.memory_kafka.broker import MemoryBroker
from brokers.records import Ends, KafkaRecord
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Offset, TopicName


class MemoryReader:
    """A `RecordReader`. Without a record to read, it sleeps once on the broker's clock."""

    def __init__(self, broker: MemoryBroker, timeout_s: float, isolation: Isolation) -> None:
        self._broker = broker
        self._timeout_s = timeout_s
        self._isolation = isolation
        self._positions: dict[TopicName, dict[int, Offset]] = {}
        self.closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def positions(self) -> Ends:
        """Per assigned partition the next offset to read."""
        return self._positions

    def assign(self, starts: Ends) -> None:
        """Read these partitions from these offsets, and no others."""
        self._positions = {topic: dict(offsets) for topic, offsets in starts.items()}

    def bounds(self, topic: TopicName, partition: int) -> tuple[Offset, Offset]:
        """The oldest offset of a partition, and its end as this reader's isolation sees it."""
        log = self._broker.partition(topic, partition)
        return log.start, log.end(self._isolation)

    def poll(
        self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
    ) -> tuple[KafkaRecord, ...]:
        """New records; if there are none now, those after a sleep."""
        found = self._take(records_max)
        if not found:
            self._broker.clock.sleep(timeout_s)
            found = self._take(records_max)
        return tuple(found)

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The records of the assigned partitions up to these ends, one partition after another."""
        for topic, offsets in self._positions.items():
            for partition in offsets:
                end = ends.get(topic, {}).get(partition)
                if end is not None:
                    yield from self._read_to(topic, partition, end)

    def close(self) -> None:
        """Close it; later reads raise."""
        self.closed = True

    def _take(self, records_max: int) -> list[KafkaRecord]:
        found: list[KafkaRecord] = []
        for topic, offsets in self._positions.items():
            for partition in offsets:
                records, end = self._read(topic, partition)
                taken = records[: records_max - len(found)]
                if len(taken) == len(records):
                    offsets[partition] = end
                elif taken:
                    offsets[partition] = Offset(taken[-1].offset + 1)
                found += taken
        return found

    def _read_to(self, topic: TopicName, partition: int, end: Offset) -> Iterator[KafkaRecord]:
        offsets, waited = self._positions[topic], False
        while offsets[partition] < end:
            records, reached = self._read(topic, partition)
            yield from (record for record in records if record.offset < end)
            if reached < end and reached == offsets[partition]:
                if waited:
                    raise NotNowError(
                        f"nothing new came for {self._timeout_s:g} s, still to be read: "
                        f"topic {topic}, partition {partition} up to {end}"
                    )
                waited = True
                self._broker.clock.sleep(self._timeout_s)
            offsets[partition] = min(reached, end)

    def _read(self, topic: TopicName, partition: int) -> tuple[list[KafkaRecord], Offset]:
        """The records from the position on, and their end offset."""
        if self.closed:
            raise BrokenInvariantError("the reader is closed", place=f"topic {topic}")
        start = self._positions[topic][partition]
        if start == BEGINNING:
            start = self._broker.partition(topic, partition).start
        return self._broker.read(topic, partition, start, self._isolation)
