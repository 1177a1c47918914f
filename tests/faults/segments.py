"""Parser of Kafka's log files: batches, producers and outcomes of transactions. Pure.

Only the files contain which records belong to which transaction, how each transaction ended, and
the producer epoch of each batch. The layout is that of record batches, version 2.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum

from pipeline.ids import TopicName
from tests.faults.history import Place

_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, checksum, attributes, last offset, two timestamps,
producer id, producer epoch, sequence, count."""
_BEHIND_LENGTH = 12
"""The length field counts from this offset."""
_MAGIC = 2
_MAGIC_AT = 16
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_KEY_AT = _HEADER.size + 5
"""After five numbers of one byte each: length, attributes, two deltas, length of the key."""
NO_PRODUCER = -1


class Outcome(Enum):
    """How a transaction ended."""

    ABORT = 0
    COMMIT = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of one partition: offsets from `first` to `last`, both included.

    `outcome` is set for the control batch that ends a transaction; `producer` is -1 without
    idempotence; `newest_ms` is the largest timestamp, of a control batch the broker's time.
    """

    first: int
    last: int
    producer: int
    epoch: int
    transactional: bool
    outcome: Outcome | None
    newest_ms: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Log:
    """All batches of one partition, in order."""

    topic: TopicName
    partition: int
    batches: tuple[Batch, ...]

    def place(self, offset: int) -> Place:
        """An offset of this partition as a place."""
        return Place(self.topic, self.partition, offset)


class DamagedLogError(Exception):
    """A log file is malformed."""


def read_segment(data: bytes) -> Iterator[Batch]:
    """The batches of one segment file, without an incomplete one at the end.

    Raises:
        DamagedLogError: a batch is not of version 2.
    """
    at = 0
    while at + _HEADER.size <= len(data):
        fields = _HEADER.unpack_from(data, at)
        first, length, magic = fields[0], fields[1], fields[3]
        if magic != _MAGIC or length <= 0:
            raise DamagedLogError(f"byte {at + _MAGIC_AT}: version {magic}, length {length}")
        if at + _BEHIND_LENGTH + length > len(data):
            return
        attributes, last_delta, producer, epoch = fields[5], fields[6], fields[9], fields[10]
        outcome = None
        if attributes & _CONTROL:
            _, kind = _CONTROL_KEY.unpack_from(data, at + _CONTROL_KEY_AT)
            outcome = Outcome(kind)
        yield Batch(
            first=first,
            last=first + last_delta,
            producer=producer,
            epoch=epoch,
            transactional=bool(attributes & _TRANSACTIONAL),
            outcome=outcome,
            newest_ms=fields[8],
        )
        at += _BEHIND_LENGTH + length


def outcomes(log: Log) -> Iterator[tuple[Batch, Outcome | None]]:
    """The data batches of transactions, with their outcome; None for open ones.

    A transaction is all batches of one producer since its last control batch. A control batch under
    a newer epoch of the producer ends the transaction of the older one.
    """
    waiting: dict[int, list[Batch]] = {}
    for batch in log.batches:
        if not batch.transactional:
            continue
        if batch.outcome is None:
            waiting.setdefault(batch.producer, []).append(batch)
            continue
        for ended in waiting.pop(batch.producer, []):
            yield ended, batch.outcome
    for left in waiting.values():
        for batch in left:
            yield batch, None


def offsets_of(batches: Iterable[Batch]) -> Iterator[int]:
    """All offsets of some batches."""
    for batch in batches:
        yield from range(batch.first, batch.last + 1)
