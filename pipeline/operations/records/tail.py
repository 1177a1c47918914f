"""Tail of a topic: existing records, or the last of them, then new ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from brokers.kafka_interface import RecordReader
from brokers.log_reader import newest_records
from brokers.records import KafkaRecord
from pipeline.clock import Clock
from pipeline.errors import RetryError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.selection import Selector

_POLL_S = 0.5


class TailStart(Enum):
    """Start of a tail that is not a time."""

    BEGINNING = "beginning"
    NOW = "now"


@dataclass(frozen=True, slots=True)
class TailLimits:
    """Start and end of a tail.

    Args:
        start: a Kafka timestamp, or one end of the topic.
        last: the number of newest existing records; None: all from `start` on.
        deadline_s: the monotonic time at which it ends; None: no limit.
        follow: whether it continues with new records.
    """

    start: TailStart | Millis
    last: int | None
    deadline_s: float | None
    follow: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """A tail of one topic."""

    topic: TopicName
    limits: TailLimits
    selector: Selector
    connections: Connections
    clock: Clock

    def records(self) -> Iterator[KafkaRecord]:
        """The matching records within the limits; blocks until new ones are appended.

        Raises:
            RetryError: the last records were not found in time.
        """
        reader = self.connections.reader()
        starts = self._starts()
        ends = self.connections.topics.end_offsets([self.topic]).get(self.topic, {})
        if self.limits.last is not None:
            bounds = {
                partition: (min(starts.get(partition, end), end), end)
                for partition, end in ends.items()
            }
            yield from newest_records(
                reader, self.topic, bounds, self.limits.last, self._matches_in_time
            )
            if not self.limits.follow:
                return
            starts = ends
        reader.assign({self.topic: starts})
        yield from self._polled(reader, ends)

    def _starts(self) -> Mapping[int, Offset]:
        """The first offset of each partition."""
        topics, start = self.connections.topics, self.limits.start
        match start:
            case TailStart.BEGINNING:
                return topics.start_offsets([self.topic])[self.topic]
            case TailStart.NOW:
                return topics.end_offsets([self.topic])[self.topic]
            case _:
                return topics.offsets_for_time(self.topic, start)

    def _over(self) -> bool:
        deadline_s = self.limits.deadline_s
        return deadline_s is not None and self.clock.monotonic_s() >= deadline_s

    def _matches_in_time(self, record: KafkaRecord) -> bool:
        if self._over():
            raise RetryError(
                "the last records were not found in time",
                place=self.topic,
                hint="give a longer --timeout, or a later --from.",
            )
        return self.selector.matches(record)

    def _polled(self, reader: RecordReader, ends: Mapping[int, Offset]) -> Iterator[KafkaRecord]:
        """Poll until a limit; the ends are limits only if the tail does not follow.

        One poll is made even if the deadline passed while the connections were opened.
        """
        follow = self.limits.follow
        while True:
            for record in reader.poll(_POLL_S):
                included = follow or record.offset < ends.get(record.partition, 0)
                if included and self.selector.matches(record):
                    yield record
            if self._over() or (not follow and _reached(reader, ends)):
                return


def _reached(reader: RecordReader, ends: Mapping[int, Offset]) -> bool:
    return all(
        position >= ends.get(partition, 0)
        for positions in reader.positions.values()
        for partition, position in positions.items()
    )
