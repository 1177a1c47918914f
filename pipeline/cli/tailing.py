"""The records that `tail` shows: all that are there, or the last of them, and those that come."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from brokers.kafka.reader import TopicReader
from brokers.records import KafkaRecord
from pipeline.cli.connections import Connections
from pipeline.cli.newest import newest
from pipeline.cli.times import parse_time
from pipeline.cli.viewing import Look
from pipeline.clock import Clock
from pipeline.errors import RetryError
from pipeline.ids import Offset, TopicName

_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a tail begins and when it ends.

    Args:
        start: `beginning`, `now`, or a time as typed.
        last: so many records that are there already, the newest; None: all of them.
        over_at_s: it ends at this steady time; None: at none.
        follow: whether it goes on with new records.
    """

    start: str
    last: int | None
    over_at_s: float | None
    follow: bool


@dataclass(frozen=True, slots=True)
class Tail:
    """One tail of one topic."""

    topic: TopicName
    limits: Limits
    look: Look
    connections: Connections
    clock: Clock

    def records(self) -> Iterator[KafkaRecord]:
        """What is there, all of it or the last of it; then what comes; only what is wanted.

        Raises:
            RetryError: the last records were not found in time.
            UsageError: the start is no time.
        """
        reader = self.connections.reader()
        starts = self._starts()
        ends = self.connections.topics.end_offsets([self.topic]).get(self.topic, {})
        if self.limits.last is not None:
            bounds = {
                partition: (min(starts.get(partition, end), end), end)
                for partition, end in ends.items()
            }
            yield from newest(reader, self.topic, bounds, self.limits.last, self._wanted_in_time)
            if not self.limits.follow:
                return
            starts = ends
        reader.assign({self.topic: starts})
        yield from self._coming(reader, ends)

    def _starts(self) -> Mapping[int, Offset]:
        """Where to begin in each partition."""
        topics, start = self.connections.topics, self.limits.start
        if start == "beginning":
            return topics.start_offsets([self.topic])[self.topic]
        if start == "now":
            return topics.end_offsets([self.topic])[self.topic]
        return topics.offsets_for_time(self.topic, parse_time(start, self.clock.now_ms()))

    def _over(self) -> bool:
        over_at_s = self.limits.over_at_s
        return over_at_s is not None and self.clock.monotonic_s() >= over_at_s

    def _wanted_in_time(self, record: KafkaRecord) -> bool:
        if self._over():
            raise RetryError(
                "the last records were not found in time",
                place=self.topic,
                hint="give a longer --timeout, or a later --from.",
            )
        return self.look.wanted(record)

    def _coming(self, reader: TopicReader, ends: Mapping[int, Offset]) -> Iterator[KafkaRecord]:
        """Records as they come, until a limit; the ends count only if the tail does not follow."""
        follow = self.limits.follow
        while not self._over():
            for record in reader.poll(_POLL_S):
                here = follow or record.offset < ends.get(record.partition, 0)
                if here and self.look.wanted(record):
                    yield record
            if not follow and _reached(reader, ends):
                return


def _reached(reader: TopicReader, ends: Mapping[int, Offset]) -> bool:
    return all(
        position >= ends.get(partition, 0)
        for positions in reader.positions.values()
        for partition, position in positions.items()
    )
