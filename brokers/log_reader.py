"""Lookups of single records in topics: the newest ones, the oldest timestamp."""

from collections import deque
from dataclasses import dataclass

from brokers.kafka_interface import FETCH_WAIT_RANGE_MS, KafkaCluster
from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, TopicName

_FIRST_STEP = 64
_STEP_GROWTH = 8


@dataclass(frozen=True, slots=True)
class LogReader:
    """Looks up committed records, each time with a reader of its own.

    Every method raises `UnavailableError` when the brokers do not answer, and `NoSuchTopicError`
    when the topic does not exist.
    """

    kafka: KafkaCluster
    timeout_s: float

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last record of partition 0; None if there is none."""
        return next(iter(self.newest(topic, 1)), None)

    def newest(self, topic: TopicName, count: int) -> tuple[KafkaRecord, ...]:
        """The last records of partition 0, oldest first; fewer when it holds fewer.

        Reads backwards in growing steps, since the last offsets may hold no record at all.
        """
        found: deque[KafkaRecord] = deque()
        with self.kafka.reader(self.timeout_s, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
            start, upper = reader.bounds(topic, 0)
            step = _FIRST_STEP
            while len(found) < count and upper > start:
                lower = Offset(max(start, upper - step))
                reader.assign({topic: {0: lower}})
                part = deque(reader.read_to({topic: {0: upper}}), count - len(found))
                found.extendleft(reversed(part))
                upper, step = lower, step * _STEP_GROWTH
        return tuple(found)

    def oldest_ms(self, topic: TopicName, partitions: int) -> Millis | None:
        """The least timestamp among the first records of its partitions; None: it is empty."""
        found: list[Millis] = []
        with self.kafka.reader(self.timeout_s, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
            for partition in range(partitions):
                start, end = reader.bounds(topic, partition)
                reader.assign({topic: {partition: start}})
                first = next(reader.read_to({topic: {partition: end}}), None)
                if first is not None:
                    found.append(first.timestamp_ms)
        return min(found, default=None)
