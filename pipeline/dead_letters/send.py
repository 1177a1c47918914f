"""Sends dead letters again, in transactions of bounded size."""

from collections.abc import Iterable, Iterator, Sequence

from brokers.kafka_interface import TransactionWriter
from pipeline.clock import Clock, Deadline
from pipeline.dead_letters.letter import Letter
from pipeline.dead_letters.redrive_rules import headers_again
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
    """Send letters again, each by the partition of the record that it was.

    Args:
        letters: what is sent.
        topic: where to.
        partitions: those of the topic that are read.
        writer: sends it.
        clock: for the deadlines of transactions.

    Raises:
        FencedError: somebody else began to send since.
        UnavailableError, RetryError: what is not committed was not sent; run it again.
    """
    for part in _parts(letters):
        writer.begin()
        for letter in part:
            record = letter.again
            at = letter.place.partition if letter.place else record.partition
            writer.send(
                topic,
                record.key,
                record.value,
                timestamp_ms=letter.again_ms,
                headers=headers_again(letter),
                partition=partitions[at % len(partitions)],
            )
        writer.commit(Deadline.after(clock, TRANSACTION_WITHIN_S, "sending dead letters again"))


def _parts(letters: Iterable[Letter]) -> Iterator[list[Letter]]:
    """As many as go into one transaction, so that memory stays small."""
    part: list[Letter] = []
    size = 0
    for letter in letters:
        part.append(letter)
        size += len(letter.again.value or b"")
        if len(part) == RECORDS_PER_TRANSACTION or size >= BYTES_PER_TRANSACTION:
            yield part
            part, size = [], 0
    if part:
        yield part
