"""Redrive writer: sends dead letters again, in transactions of bounded size."""

from collections.abc import Iterable, Iterator, Sequence

from brokers.kafka_interface import TransactionWriter
from pipeline.clock import Clock, Deadline
from pipeline.dead_letters.letter import Letter
from pipeline.dead_letters.redrive_rules import redrive_headers
from pipeline.ids import TopicName

RECORDS_PER_TRANSACTION = 1_000
BYTES_PER_TRANSACTION = 16_000_000
TRANSACTION_WITHIN_S = 60.0


def send(
    letters: Iterable[Letter],
    topic: TopicName,
    partitions: Sequence[int],
    writer: TransactionWriter,
    clock: Clock,
) -> None:
    """Send dead letters again, with partitions chosen by those of the original records.

    Args:
        letters: the dead letters.
        topic: the redrive topic.
        partitions: those of the topic that the lane reads.
        writer: its transactional writer.
        clock: for the deadlines of transactions.

    Raises:
        FencedError: another redrive has begun since.
        UnavailableError, RetryError: uncommitted records were not sent; run it again.
    """
    for part in _transactions(letters):
        writer.begin()
        for letter in part:
            record = letter.redrive_record
            at = letter.place.partition if letter.place else record.partition
            writer.send(
                topic,
                record.key,
                record.value,
                timestamp_ms=letter.redrive_timestamp_ms,
                headers=redrive_headers(letter),
                partition=partitions[at % len(partitions)],
            )
        writer.commit(Deadline.after(clock, TRANSACTION_WITHIN_S, "sending dead letters again"))


def _transactions(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """Chunks for one transaction each, so that memory stays small."""
    part: list[Letter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += len(letter.redrive_record.value or b"")
        if len(part) == RECORDS_PER_TRANSACTION or size >= BYTES_PER_TRANSACTION:
            yield part
            part, size = [], 0
    if part:
        yield part
