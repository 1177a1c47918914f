"""Lookups of single records in topics: the newest records, the first timestamp of a range."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from brokers.kafka_interface import (
    FETCH_WAIT_RANGE_MS,
    KafkaCluster,
    NoSuchTopicError,
    RecordReader,
)
from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, TopicName

Bounds = Mapping[int, tuple[Offset, Offset]]
"""Per partition the range of offsets to read: first (inclusive) and last (exclusive)."""

_FIRST_STEP = 64
_STEP_GROWTH = 8


@dataclass(frozen=True, slots=True)
class LogReader:
    """Lookup of committed records, with a new reader for each call.

    Every method raises `UnavailableError` when the brokers do not answer, and, of a single topic,
    `NoSuchTopicError` when the topic does not exist.
    """

    kafka: KafkaCluster
    timeout_s: float

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last record of partition 0; None if there is none."""
        return next(iter(self.newest(topic, 1)), None)

    def last_records(
        self, topics: Iterable[TopicName]
    ) -> Generator[KafkaRecord | None, None, None]:
        """The last record of partition 0 of each topic, with one reader; None: it has none.

        Each is read when it is requested. A topic that does not exist has none.
        """
        with self._reader() as reader:
            for topic in topics:
                try:
                    bounds = {0: reader.bounds(topic, 0)}
                except NoSuchTopicError:
                    yield None
                else:
                    found = newest_records(reader, topic, bounds, 1, lambda _: True)
                    yield next(iter(found), None)

    def newest(self, topic: TopicName, count: int) -> tuple[KafkaRecord, ...]:
        """The last records of partition 0, oldest first; fewer if it contains fewer."""
        with self._reader() as reader:
            bounds = {0: reader.bounds(topic, 0)}
            return newest_records(reader, topic, bounds, count, lambda _: True)

    def oldest_ms(self, topic: TopicName, partitions: int) -> Millis | None:
        """The smallest timestamp of the first records of its partitions; None: it is empty."""
        with self._reader() as reader:
            found = [
                first_timestamp(reader, topic, partition, reader.bounds(topic, partition))
                for partition in range(partitions)
            ]
        return min((one for one in found if one is not None), default=None)

    def _reader(self) -> RecordReader:
        return self.kafka.reader(self.timeout_s, fetch_wait_ms=FETCH_WAIT_RANGE_MS)


def newest_records(
    reader: RecordReader,
    topic: TopicName,
    bounds: Bounds,
    count: int,
    matches: Callable[[KafkaRecord], bool],
) -> tuple[KafkaRecord, ...]:
    """The last `count` matching records within the bounds, oldest first; fewer if there are fewer.

    Offsets do not count records, and not every record matches, so each round reads a longer range
    of every partition that has too few so far.

    Raises:
        UnavailableError, RetryError: as the reader does.
    """
    found: dict[int, deque[KafkaRecord]] = {partition: deque() for partition in bounds}
    uppers = {partition: end for partition, (start, end) in bounds.items() if start < end}
    step = max(_FIRST_STEP, count)
    while uppers:
        lowers = {
            partition: Offset(max(bounds[partition][0], upper - step))
            for partition, upper in uppers.items()
        }
        pieces: dict[int, deque[KafkaRecord]] = {
            partition: deque(maxlen=count - len(found[partition])) for partition in uppers
        }
        reader.assign({topic: lowers})
        for record in reader.read_to({topic: uppers}):
            if matches(record):
                pieces[record.partition].append(record)
        for partition, piece in pieces.items():
            found[partition].extendleft(reversed(piece))
        uppers = {
            partition: lower
            for partition, lower in lowers.items()
            if lower > bounds[partition][0] and len(found[partition]) < count
        }
        step *= _STEP_GROWTH
    return last_of([found[partition] for partition in sorted(found)], count)


def last_of(parts: Sequence[Sequence[KafkaRecord]], count: int) -> tuple[KafkaRecord, ...]:
    """The last records of several partitions together, oldest first.

    Within a partition the order is that of the offsets, whatever the timestamps. Between partitions
    the later timestamp is the later record; of equal ones, that of the later partition.
    """
    left = [len(part) for part in parts]
    found: deque[KafkaRecord] = deque()
    while len(found) < count and any(left):
        ends = [
            (part[n - 1].timestamp_ms, at)
            for at, (part, n) in enumerate(zip(parts, left, strict=True))
            if n
        ]
        _, at = max(ends)
        left[at] -= 1
        found.appendleft(parts[at][left[at]])
    return tuple(found)


def first_timestamp(
    reader: RecordReader, topic: TopicName, partition: int, offsets: tuple[Offset, Offset]
) -> Millis | None:
    """The Kafka timestamp of the first record in a range of offsets; None: it has no record."""
    start, end = offsets
    if start >= end:
        return None
    reader.assign({topic: {partition: start}})
    first = next(reader.read_to({topic: {partition: end}}), None)
    return None if first is None else first.timestamp_ms
