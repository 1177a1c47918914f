"""Inputs of a replay: offset ranges, and dead letters that are processed again."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from brokers.log_reader import first_timestamp
from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.lanes.dead_letter_reasons import LATENESS
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.shape import reach_ms
from pipeline.network.model import ExternalStream
from pipeline.operations.connections import Connections
from pipeline.operations.dead_letters.letters import letters_of
from pipeline.operations.positions import last_marker
from pipeline.operations.replay.fragment import ReplayedFragment
from pipeline.operations.topics import topic_ends
from pipeline.planner.plan import Fragment, FragmentInput
from pipeline.replay.period import Interval, Period, period
from pipeline.replay.ranges import PartitionLog, Range, may_lack, ranges, timestamps_from


@dataclass(frozen=True, slots=True)
class ReplayInput:
    """The records that a replay reads.

    Args:
        period: of the results, and of the records that they are computed from.
        ranges: offset ranges, one per input partition.
        since: for each range the Kafka timestamp of its first record; None: it has none.
        late: number of its records that are dead letters for lateness; they count now.
        judged_again: number of those that are dead letters for another reason.
    """

    period: Period
    ranges: tuple[Range, ...]
    since: tuple[Millis | None, ...]
    late: int
    judged_again: int

    @property
    def offsets(self) -> int:
        """Number of offsets, at least the number of records."""
        return sum(one.offsets for one in self.ranges)


def replay_period(
    what: ReplayedFragment, asked: Interval, connections: Connections, *, published: bool = False
) -> Period:
    """The period of a replay; `published`: as in `pipeline.replay.period.period`.

    Raises:
        RefusedError: the fragment has not run, or has not reached the end of the period.
    """
    fragment = what.fragment
    marker = last_marker(fragment.names, connections)
    if marker is None:
        raise RefusedError(
            "the fragment has not run yet, so there is nothing to compute again", place=what.place
        )
    shape = fragment.shape
    return period(shape, asked, marker.boundary_ms, what.place, published=published)


def replay_input(
    what: ReplayedFragment, found: Period, connections: Connections, *, incomplete: bool
) -> ReplayInput:
    """The records to read for a period.

    Args:
        what: the fragment that is replayed.
        found: the period.
        connections: to Kafka.
        incomplete: whether to continue with the remaining records if older ones are deleted.

    Raises:
        RefusedError: needed records may be deleted, or the inputs have none.
    """
    fragment = what.fragment
    shape = fragment.shape
    kept = [
        one
        for stream in fragment.inputs
        for one in _stream_offsets(stream, found, reach_ms(shape, stream.name), connections)
    ]
    chosen = ranges(kept, incomplete=incomplete)
    reader = connections.reader()
    since = tuple(first_timestamp(reader, r.topic, r.partition, (r.start, r.end)) for r in chosen)
    late, again = _count_dead_letters(fragment, chosen, found, connections)
    return ReplayInput(found, chosen, since, late, again)


def _stream_offsets(
    stream: FragmentInput, found: Period, reach_ms: int, connections: Connections
) -> Iterator[PartitionLog]:
    """Offsets of a stream that results of a period can depend on."""
    from_ms = Millis(max(found.input_from_ms, found.results_from_ms - reach_ms))
    ahead_ms = stream.ahead_ms if isinstance(stream, ExternalStream) else 0
    for one in kept_offsets(stream, timestamps_from(stream, from_ms), connections):
        yield replace(one, reach_ms=reach_ms + ahead_ms)


def kept_offsets(
    stream: FragmentInput, from_ms: Millis, connections: Connections
) -> list[PartitionLog]:
    """Offsets of the partitions of a stream from a Kafka timestamp on.

    Raises:
        RefusedError: its topic does not exist.
    """
    topic, topics, reader = stream.topic, connections.topics, connections.reader()
    ends = topic_ends(topic, connections)
    starts = topics.start_offsets([topic])[topic]
    since = topics.offsets_for_time(topic, from_ms)
    kept = []
    for partition, end in sorted(ends.items()):
        at = InputPartition(stream.name, topic, partition)
        start = starts.get(partition, end)
        one = PartitionLog(at, start, end, min(end, max(start, since.get(partition, end))), None)
        if may_lack(one):
            one = PartitionLog(
                at, start, end, one.since, first_timestamp(reader, topic, partition, (start, end))
            )
        kept.append(one)
    return kept


def _count_dead_letters(
    fragment: Fragment, chosen: tuple[Range, ...], found: Period, connections: Connections
) -> tuple[int, int]:
    """Numbers of late records that count now, and of records that are judged again."""
    late = again = 0
    for letter in letters_of(fragment, connections):
        at = letter.at
        if at is None or not any(r.contains(at.topic, at.partition, at.offset) for r in chosen):
            continue
        if letter.reason not in LATENESS:
            again += 1
        elif letter.event_time_ms is not None and found.has_input(letter.event_time_ms):
            late += 1
    return late, again
