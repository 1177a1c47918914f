"""Which offsets of the input log a replay reads, and whether all of them are still there. Pure.

A record of an external stream whose event time lies further than `ahead` beyond its Kafka timestamp
is no good record; the event time of a derived stream is its Kafka timestamp. So what has an event
time at or after t has a Kafka timestamp at or after t - ahead, and lies at or behind the first
record that has. Late records may lie anywhere behind it, so the range ends where the log ends now.
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
class Kept:
    """What one input partition holds.

    Args:
        log_start: its oldest offset.
        end: its committed end.
        since: the first record at or after the Kafka timestamp that a replay begins with; the end
            if there is none.
        oldest_ms: the Kafka timestamp of its oldest record; None: it holds none, or nobody asked.
        reach_ms: how far a result and the timestamps of its records here may lie apart.
    """

    at: InputPartition
    log_start: Offset
    end: Offset
    since: Offset
    oldest_ms: Millis | None
    reach_ms: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """What is read of one input partition; `gone`: the log may have held more that is needed."""

    input: StreamName
    topic: TopicName
    partition: int
    start: Offset
    end: Offset
    gone: bool

    @property
    def offsets(self) -> int:
        """How many offsets that are, at least as many as records."""
        return max(0, self.end - self.start)

    def holds(self, topic: TopicName, partition: int, offset: Offset) -> bool:
        """Whether a record lies in it."""
        return (topic, partition) == (self.topic, self.partition) and (
            self.start <= offset < self.end
        )


def timestamps_from(stream: FragmentInput, input_from_ms: Millis) -> Millis:
    """From which Kafka timestamp on records can have an event time at or after this one."""
    ahead_ms = stream.ahead_ms if isinstance(stream, ExternalStream) else 0
    return Millis(input_from_ms - ahead_ms)


def may_lack(kept: Kept) -> bool:
    """Whether records that are needed may be gone: all that is left is needed, and more was there.

    If an older record than the first that is needed is still there, so is everything behind it.
    """
    return kept.log_start > 0 and kept.since <= kept.log_start


def ranges(kept: Iterable[Kept], *, incomplete: bool) -> tuple[Range, ...]:
    """What to read of every input partition.

    Args:
        kept: all input partitions.
        incomplete: whether to do with what is left where records are gone.

    Raises:
        RefusedError: records that are needed may be gone, with the place and what can be done.
    """
    found = whole(kept, incomplete=incomplete)
    if not any(one.offsets for one in found):
        raise RefusedError(
            "the inputs hold no records that can belong to these results",
            hint="`medusa offsets show` says what they hold.",
        )
    return found


def whole(kept: Iterable[Kept], *, incomplete: bool) -> tuple[Range, ...]:
    """The same, also when they hold nothing."""
    found = []
    for one in kept:
        gone = may_lack(one)
        if gone and not incomplete:
            raise _gone(one)
        found.append(Range(one.at.input, one.at.topic, one.at.partition, one.since, one.end, gone))
    return tuple(found)


def _gone(one: Kept) -> RefusedError:
    left, later = "and it holds no record any more", ""
    if one.oldest_ms is not None:
        left = f"whose record has the time {instant(one.oldest_ms)}"
        first = instant(Millis(one.oldest_ms + one.reach_ms + 1))
        later = (
            f"begin after {first}, which is the first time for which this partition is whole, or "
        )
    return RefusedError(
        f"records that are needed may be gone: the partition begins at offset {one.log_start}, "
        f"{left}",
        place=f"topic {one.at.topic}, partition {one.at.partition}",
        hint=f"{later}give `--incomplete` to compute with what is left: results that reach further "
        "back will lack it.",
    )
