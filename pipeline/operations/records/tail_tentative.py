"""Tail of an output with its tentative results: each record with a mark that says what it is."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from brokers.kafka_interface import RecordReader
from brokers.records import Ends, KafkaRecord
from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.names import boundaries_topic, tentative_topic
from pipeline.operations.connections import Connections
from pipeline.operations.records.selection import Selector
from pipeline.reader.reader import Connected, Reader
from pipeline.reader.results import Stable, Start, Tentative, Undone

NO_OFFSET: Final = Offset(-1)
"""Offset of a record that is shown, and is none of the stable topic."""
_POLL_S: Final = 0.5


class Mark(Enum):
    """What a shown record is."""

    TENTATIVE = "tentative"
    STABLE = "stable"
    """A stable result of which there was no tentative one."""
    CONFIRMED = "confirmed"
    """A stable result that is equal to the tentative one."""
    REPLACED = "replaced"
    """A stable result that differs from the tentative one."""
    UNDONE = "undone"
    """A result that does not count any more, with the value that it had."""
    DONE = "done"
    """All results of a generation are settled."""


_MARKS: Final = {None: Mark.STABLE, True: Mark.CONFIRMED, False: Mark.REPLACED}


@dataclass(frozen=True, slots=True)
class MarkedRecord:
    """A record with its mark.

    Args:
        mark: what it is.
        record: as the stable topic has it, or would have it; None: a generation is done.
        generation: of tentative results; empty: a stable result.
        corrects: the number of a correction; None: it is none.
    """

    mark: Mark
    record: KafkaRecord | None
    generation: str = ""
    corrects: int | None = None


@dataclass(frozen=True, slots=True)
class TentativeLimits:
    """Start and end of a tail.

    Args:
        start: where it begins in the stable topic.
        deadline_s: the monotonic time at which it ends; None: no limit.
        follow: whether it continues with new records.
    """

    start: Start
    deadline_s: float | None
    follow: bool


@dataclass(slots=True)
class Marked:
    """Handler of a reader: collects what is to be shown.

    A condition selects results. What becomes of a tentative one that was shown is shown as well.
    """

    topic: TopicName
    selector: Selector
    found: list[MarkedRecord] = field(default_factory=list)
    _shown: dict[bytes, KafkaRecord] = field(default_factory=dict)
    """The tentative results that were shown and count, by id."""

    def on_tentative(self, result: Tentative) -> None:
        """A tentative result counts."""
        at = NO_OFFSET, Millis(result.timestamp_ms)
        record = KafkaRecord(self.topic, result.partition, *at, result.key, result.value)
        if self._selects(record, result.id):
            self._shown[result.id] = record
            self.found.append(MarkedRecord(Mark.TENTATIVE, record, result.generation))

    def on_stable(self, result: Stable) -> None:
        """A stable result counts."""
        at = Offset(result.offset), Millis(result.timestamp_ms)
        record = KafkaRecord(self.topic, result.partition, *at, result.key, result.value)
        if self._selects(record, result.id):
            mark = _MARKS[result.confirms]
            self.found.append(MarkedRecord(mark, record, corrects=result.corrects))
        if result.id is not None:
            self._shown.pop(result.id, None)

    def on_undo(self, undone: Undone) -> None:
        """A result counts no more."""
        before = self._shown.pop(undone.id, None)
        if before is None and undone.generation is None and self.selector.selects_all:
            at = NO_OFFSET, Millis(undone.timestamp_ms)
            before = KafkaRecord(self.topic, undone.partition, *at, undone.key, None)
        if before is not None:
            generation = undone.generation or ""
            self.found.append(MarkedRecord(Mark.UNDONE, before, generation, undone.corrects))

    def on_done(self, generation: str) -> None:
        """All results of a generation are settled."""
        self.found.append(MarkedRecord(Mark.DONE, None, generation))

    def _selects(self, record: KafkaRecord, result_id: bytes | None) -> bool:
        return self.selector.matches(record) or result_id in self._shown


@dataclass(frozen=True, slots=True)
class TentativeTail:
    """A tail of an output and its tentative results."""

    topic: TopicName
    limits: TentativeLimits
    selector: Selector
    connections: Connections
    clock: Clock

    def records(self) -> Iterator[MarkedRecord]:
        """The matching records within the limits; blocks until new ones are appended.

        Raises:
            RefusedError: the topic has no tentative results.
        """
        topics, reader = self.connections.topics, self.connections.reader()
        tentative = tentative_topic(self.topic)
        if tentative not in topics.describe([tentative]):
            raise RefusedError(
                "its results are never tentative",
                place=f"topic {self.topic}",
                hint="`medusa tail` without --tentative shows it; `medusa explain` says which "
                "fragments may have tentative results.",
            )
        ends = topics.end_offsets([self.topic, boundaries_topic(self.topic), tentative])
        marked = Marked(self.topic, self.selector)
        connected = Connected(topics, reader, self.clock)
        with Reader(connected, self.topic, marked, self.limits.start) as results:
            while True:
                results.poll(_POLL_S)
                yield from marked.found
                marked.found.clear()
                if self._over() or (not self.limits.follow and _reached(reader, ends)):
                    return

    def _over(self) -> bool:
        deadline_s = self.limits.deadline_s
        return deadline_s is not None and self.clock.monotonic_s() >= deadline_s


def _reached(reader: RecordReader, ends: Ends) -> bool:
    """Whether all records that existed were read; the tentative topic is read last."""
    read = reader.positions
    return all(
        read.get(topic, {}).get(partition, Offset(-1)) >= end
        for topic, partitions in ends.items()
        for partition, end in partitions.items()
    )
