"""Offset ranges of the input log that a replay reads; detects deleted records. Pure.

A record of an external stream whose event time exceeds its Kafka timestamp by more than `ahead` is
a dead letter; the event time of a derived stream is its Kafka timestamp. So a record with an event
time at or after t has a Kafka timestamp at or after t - ahead, and its offset is at or after that
of the first record with such a timestamp. Late records may be at any offset after it, so the range
ends at the current end of the log.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.markers.positions import InputPartition
from pipeline.network.model import ExternalStream
from pipeline.planner.instants import instant
from pipeline.planner.plan import FragmentInput


@dataclass(frozen=True, slots=True)
class PartitionLog:
    """Offsets of one input partition.

    Args:
        log_start: its oldest offset.
        end: its committed end.
        since: the first offset to read, by the Kafka timestamp from which records are needed; `end`
            if there is none.
        oldest_ms: the Kafka timestamp of its oldest record; None: it has none, or it was not read.
        reach_ms: maximum difference between the event time of a result and the Kafka timestamps of
            its records in this partition.
    """

    at: InputPartition
    log_start: Offset
    end: Offset
    since: Offset
    oldest_ms: Millis | None
    reach_ms: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Offset range to read of one partition; `gone`: needed records may have been deleted."""

    input: StreamName
    topic: TopicName
    partition: int
    start: Offset
    end: Offset
    gone: bool

    @property
    def offsets(self) -> int:
        """The number of offsets, at least that of records."""
        return max(0, self.end - self.start)

    def contains(self, topic: TopicName, partition: int, offset: Offset) -> bool:
        """Whether it contains a record."""
        return (topic, partition) == (self.topic, self.partition) and (
            self.start <= offset < self.end
        )


def timestamps_from(stream: FragmentInput, input_from_ms: Millis) -> Millis:
    """The minimum Kafka timestamp of the records with an event time at or after this one."""
    ahead_ms = stream.ahead_ms if isinstance(stream, ExternalStream) else 0
    return Millis(input_from_ms - ahead_ms)


def may_lack(log: PartitionLog) -> bool:
    """Whether needed records may be deleted: some are, and all remaining ones are needed.

    If a record older than the first needed one remains, no record after it is deleted.
    """
    return log.log_start > 0 and log.since <= log.log_start


def ranges(logs: Iterable[PartitionLog], *, incomplete: bool) -> tuple[Range, ...]:
    """The offset range to read of every input partition.

    Args:
        logs: all input partitions.
        incomplete: whether to go on with the remaining records where older ones may be deleted.

    Raises:
        RefusedError: needed records may be deleted, or all ranges are empty.
    """
    found = possibly_empty_ranges(logs, incomplete=incomplete)
    if not any(one.offsets for one in found):
        raise RefusedError(
            "the inputs hold no records that can belong to these results",
            hint="`medusa offsets show` prints their offsets.",
        )
    return found


def possibly_empty_ranges(logs: Iterable[PartitionLog], *, incomplete: bool) -> tuple[Range, ...]:
    """As `ranges`, but all of them may be empty."""
    found = []
    for one in logs:
        gone = may_lack(one)
        if gone and not incomplete:
            raise _records_gone(one)
        found.append(Range(one.at.input, one.at.topic, one.at.partition, one.since, one.end, gone))
    return tuple(found)


def _records_gone(one: PartitionLog) -> RefusedError:
    left, later = "and it holds no record any more", ""
    if one.oldest_ms is not None:
        left = f"whose record has the time {instant(one.oldest_ms)}"
        first = instant(Millis(one.oldest_ms + one.reach_ms + 1))
        later = f"begin after {first}, the first time for which this partition is complete, or "
    return RefusedError(
        f"records that are needed may be gone: the partition begins at offset {one.log_start}, "
        f"{left}",
        place=f"topic {one.at.topic}, partition {one.at.partition}",
        hint=f"{later}give `--incomplete` to compute with what is left: results that reach further "
        "back will lack it.",
    )
