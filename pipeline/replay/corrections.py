"""What has to be written so that a topic says what was computed again, and writing it.

Of the records with one id the last one counts, so a correction is one more record with that id, in
the partition and at the time of the result; one without a value takes the result away. What stands
in the topic already is not written again, so a second run writes nothing.
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
"""So many results are compared at once; each costs a few hundred bytes and its value."""


class Change(Enum):
    """What a correction does to a result."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Standing:
    """The last record of an id; `number` counts the corrections, and is 0 for a first result."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: Millis
    partition: int
    number: int


@dataclass(frozen=True, slots=True)
class Correction:
    """One record to be written; `partition` -1: by its key."""

    change: Change
    result: bytes
    key: bytes | None
    value: bytes | None
    timestamp_ms: Millis
    partition: int
    number: int

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """What makes it a correction."""
        return (RESULT_ID, self.result), (CORRECTION, str(self.number).encode())


def standing(records: Iterable[KafkaRecord], period: Period) -> dict[bytes, Standing]:
    """What a topic says about the results of a period, by id.

    Args:
        records: its records from the first one of the period on, in order within a partition.
        period: with an end.

    Raises:
        RefusedError: a record of the period has no id, or there are too many of them.
    """
    found: dict[bytes, Standing] = {}
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
                hint="it was written before its output said `corrections: true`: begin later.",
            )
        number = int(headers.get(CORRECTION) or 0)
        found[result] = Standing(
            record.key, record.value, record.timestamp_ms, record.partition, number
        )
        if len(found) > IDS_MAX:
            raise RefusedError(
                f"more than {IDS_MAX} results lie in the period",
                place=f"topic {record.topic}",
                hint="correct it in shorter pieces.",
            )
    return found


def corrections(
    stands: Mapping[bytes, Standing], results: Iterable[Result]
) -> Iterator[Correction]:
    """What differs: results in their order, then those that are no results any more."""
    rest = dict(stands)
    for key, value, timestamp_ms, partition, result in results:
        if result is None:
            raise RefusedError("the results carry no ids")
        at, before = Millis(timestamp_ms), rest.pop(result, None)
        if before is None:
            yield Correction(Change.ADDED, result, key, value, at, partition, 1)
        elif (before.key, before.value, before.timestamp_ms) != (key, value, at):
            change = Change.ADDED if before.value is None else Change.CHANGED
            yield Correction(change, result, key, value, at, before.partition, before.number + 1)
    for result, gone in rest.items():
        if gone.value is not None:
            yield Correction(
                Change.REMOVED,
                result,
                gone.key,
                None,
                gone.timestamp_ms,
                gone.partition,
                gone.number + 1,
            )


def publish(
    found: Sequence[Correction], topic: TopicName, writer: TransactionWriter, clock: Clock
) -> None:
    """Write corrections in one transaction of a writer that has started.

    Raises:
        FencedError: another run into the same topic began.
        UnavailableError, RetryError: nothing of it is visible; run it again.
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
