"""A model of a broker that produces correct histories, in which tests plant faults."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from brokers.records import KafkaRecord
from pipeline.ids import Millis, Offset, TopicName
from tests.faults.reads import Reads
from tests.faults.segments import Batch, Log, Outcome

OUT = TopicName("net-out")
START_MS = 1_700_000_000_000


def record(
    offset: int, value: bytes = b"v", *, partition: int = 0, topic: str = OUT, at_ms: int = START_MS
) -> KafkaRecord:
    """A record without key and headers."""
    return KafkaRecord(TopicName(topic), partition, Offset(offset), Millis(at_ms), None, value, ())


@dataclass
class Partition:
    """One partition: its records, and how each transaction ended."""

    topic: TopicName = OUT
    partition: int = 0
    batches: list[Batch] = field(default_factory=list)
    committed: list[KafkaRecord] = field(default_factory=list)
    uncommitted: list[KafkaRecord] = field(default_factory=list)

    @property
    def end(self) -> int:
        """The next offset."""
        return self.batches[-1].last + 1 if self.batches else 0

    def write(
        self, count: int, outcome: Outcome | None, *, producer: int = 7, epoch: int = 0
    ) -> None:
        """One transaction of one batch; None leaves it open."""
        first = self.end
        last = first + count - 1
        self.batches.append(Batch(first, last, producer, epoch, transactional=True, outcome=None))
        written = [
            record(first + i, f"{first + i}".encode(), partition=self.partition, topic=self.topic)
            for i in range(count)
        ]
        self.uncommitted += written
        if outcome is Outcome.COMMIT:
            self.committed += written
        if outcome is not None:
            mark = Batch(last + 1, last + 1, producer, epoch, transactional=True, outcome=outcome)
            self.batches.append(mark)

    @property
    def log(self) -> Log:
        """The log of the broker."""
        return Log(self.topic, self.partition, tuple(self.batches))

    def reads(self) -> Reads:
        """The reads of correct readers."""
        return Reads(
            logs=(self.log,),
            committed=tuple(self.committed),
            uncommitted=tuple(self.uncommitted),
            observed=tuple(self.committed),
        )


def batch_bytes(batch: Batch, values: Sequence[bytes] = ()) -> bytes:
    """A batch in the format of a segment file."""
    attributes = 0x10 * batch.transactional + 0x20 * (batch.outcome is not None)
    if batch.outcome is None:
        body = b"".join(values)
    else:
        key = struct.pack(">hh", 0, batch.outcome.value)
        value = struct.pack(">hi", 0, 5)
        inner = bytes((0, 0, 0, len(key) * 2)) + key + bytes((len(value) * 2,)) + value + b"\0"
        body = bytes((len(inner) * 2,)) + inner
    header = struct.pack(
        ">ibIhiqqqhii",
        *(3, 2, 0xCAFE, attributes, batch.last - batch.first, START_MS, START_MS),
        *(batch.producer, batch.epoch, 0, batch.last - batch.first + 1),
    )
    return struct.pack(">qi", batch.first, len(header) + len(body)) + header + body
