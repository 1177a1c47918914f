"""Corrections: the records that make an output topic equal to recomputed results.

The last record of an id is valid, so a correction is another record with that id, in the partition
and with the timestamp of the result; a tombstone (no value) removes the result. Unchanged results
are not written again, so a second run writes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from brokers.kafka_interface import TransactionWriter
from brokers.records import KafkaRecord
from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.ids import Millis, TopicName
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from pipeline.replay.period import Period
from pipeline.replay.write import Result, one_transaction

IDS_MAX = 1_000_000
"""Most results per comparison; each takes a few hundred bytes of memory, plus its value."""


class Change(Enum):
    """Effect of a correction on a result."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class LatestRecord:
    """Last record of a result id; `number` is that of the correction, 0 for the first result."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: Millis
    partition: int
    number: int


@dataclass(frozen=True, slots=True)
class Correction:
    """Record to write; `partition` -1: chosen by its key."""

    change: Change
    result: bytes
    key: bytes | None
    value: bytes | None
    timestamp_ms: Millis
    partition: int
    number: int

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Headers of a correction: the result's id and the correction's number."""
        return (RESULT_ID, self.result), (CORRECTION, str(self.number).encode())


def latest_records(records: Iterable[KafkaRecord], period: Period) -> dict[bytes, LatestRecord]:
    """The last record of each result of a period, by result id.

    Args:
        records: of the output topic, from the first one of the period on, in order within each
            partition.
        period: with an end.

    Raises:
        RefusedError: a record of the period has no id, or there are more than `IDS_MAX` ids.
    """
    found: dict[bytes, LatestRecord] = {}
    for record in records:
        headers = dict(record.headers)
        result = headers.get(RESULT_ID)
        if not period.has_result(record.timestamp_ms):
            if result is not None:
                found.pop(result, None)
            continue
        if result is None:
            raise RefusedError(
                "the record carries no id, so nothing can take its place",
                place=f"topic {record.topic}, partition {record.partition}, offset {record.offset}",
                hint="it was written before its output declared `corrections: true`: begin later.",
            )
        number = int(headers.get(CORRECTION) or 0)
        found[result] = LatestRecord(
            record.key, record.value, record.timestamp_ms, record.partition, number
        )
        if len(found) > IDS_MAX:
            raise RefusedError(
                f"more than {IDS_MAX} results belong to the period",
                place=f"topic {record.topic}",
                hint="correct it in shorter pieces.",
            )
    return found


def corrections(
    published: Mapping[bytes, LatestRecord], results: Iterable[Result]
) -> Iterator[Correction]:
    """Changed and added results in their order, then the removed ones."""
    rest = dict(published)
    for key, value, timestamp_ms, partition, result in results:
        if result is None:
            raise RefusedError("the results carry no ids")
        at, before = Millis(timestamp_ms), rest.pop(result, None)
        if before is None:
            yield Correction(Change.ADDED, result, key, value, at, partition, 1)
        elif (before.key, before.value, before.timestamp_ms) != (key, value, at):
            change = Change.ADDED if before.value is None else Change.CHANGED
            yield Correction(change, result, key, value, at, before.partition, before.number + 1)
    for result, removed in rest.items():
        if removed.value is not None:
            yield Correction(
                Change.REMOVED,
                result,
                removed.key,
                None,
                removed.timestamp_ms,
                removed.partition,
                removed.number + 1,
            )


def publish(
    found: Sequence[Correction], topic: TopicName, writer: TransactionWriter, clock: Clock
) -> None:
    """Write corrections in one transaction of a started writer.

    Raises:
        FencedError: another run into the same topic began.
        UnavailableError, RetryError: no record is visible; run it again.
    """
    if not found:
        return
    with one_transaction(writer, clock):
        for one in found:
            writer.send(
                topic,
                one.key,
                one.value,
                timestamp_ms=one.timestamp_ms,
                headers=one.headers,
                partition=one.partition,
            )
