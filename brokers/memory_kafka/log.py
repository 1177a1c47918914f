"""Partition logs of an in-memory Kafka, with transactions, control records and retention.

An offset is an index in the list of records. As in Kafka, the control record that ends a
transaction has an offset as well.
"""

from dataclasses import dataclass, field
from typing import Final

from brokers.kafka_interface import Isolation
from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, TransactionalId

_FIRST: Final = Offset(0)


@dataclass(slots=True)
class MemoryPartition:
    """The log of one partition.

    Args:
        log: all records ever written, control records included.
        start: the oldest offset that is not deleted.
        controls: offsets of control records, which readers skip.
        aborted: offsets of the records of aborted transactions.
        open: offsets of the records of open transactions, by transactional id.
    """

    log: list[KafkaRecord] = field(default_factory=list)
    start: Offset = _FIRST
    controls: set[int] = field(default_factory=set)
    aborted: set[int] = field(default_factory=set)
    open: dict[TransactionalId, list[Offset]] = field(default_factory=dict)

    def end(self, isolation: Isolation = Isolation.COMMITTED) -> Offset:
        """The log end offset, or (committed) the last stable offset."""
        if isolation is Isolation.COMMITTED and self.open:
            return max(self.start, min(offsets[0] for offsets in self.open.values()))
        return Offset(len(self.log))

    def enlist(self, transactional_id: TransactionalId, offset: Offset) -> None:
        """Make a record part of an open transaction."""
        self.open.setdefault(transactional_id, []).append(offset)

    def end_transaction(
        self, transactional_id: TransactionalId, at_ms: Millis, *, committed: bool
    ) -> None:
        """Commit or abort the records of an open transaction in this partition."""
        offsets = self.open.pop(transactional_id)
        if not committed:
            self.aborted.update(offsets)
        offset = Offset(len(self.log))
        self.controls.add(offset)
        first = self.log[offsets[0]]
        self.log.append(KafkaRecord(first.topic, first.partition, offset, at_ms, b"", b""))

    def read(
        self, start: int, end: int, isolation: Isolation = Isolation.COMMITTED
    ) -> list[KafkaRecord]:
        """The records of a range of offsets that are not deleted."""
        controls, aborted = self.controls, self.aborted
        if isolation is not Isolation.COMMITTED:
            aborted = set()
        found = self.log[max(start, self.start) : max(0, min(end, self.end(isolation)))]
        return [one for one in found if one.offset not in controls and one.offset not in aborted]

    def first_at(self, time_ms: Millis) -> Offset:
        """The first offset at or after a time, control records included; else the committed end."""
        end = self.end()
        found = (one.offset for one in self.log[self.start : end] if one.timestamp_ms >= time_ms)
        return next(found, end)


@dataclass(slots=True)
class MemoryTopic:
    """One topic.

    Args:
        topic_id: another one when the topic is deleted and created again.
        config: all effective settings.
        partitions: the logs; a test may append another partition.
        replication: as it was asked for.
    """

    topic_id: str
    config: dict[str, str]
    partitions: list[MemoryPartition]
    replication: int = 1
