"""Gaps: where a lane that has lost its state goes on, and which results it then withholds. Pure.

The lane begins with an empty state at the newest offsets. A result is right if no record before
these offsets may be missing in it. That is decided by event time alone: `until_ms` is the largest
event time of a result that may depend on a record before. The lane computes results at or below it
and withholds them, so no record has to be late that would not be late anyway.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.boundaries.windows import final_end
from pipeline.ids import Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.gap import Gap, Omitted
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import (
    Joined,
    Sessions,
    Shape,
    Stateless,
    Windowed,
    reach_ms,
)

READ_MOST: Final = 2_000_000
"""Maximum number of passed-over offsets whose event times are read: some ten seconds of a node."""


@dataclass(frozen=True, slots=True)
class Passed:
    """The records that a lane passes over, and how their event times are found.

    Args:
        begin: the first one in each partition; where none is passed over, the end.
        end: the newest offsets.
        read: whether the event times of all of them are read.
        bounded: the inputs of which the event times are bounded by Kafka timestamps.
        removed: those of them of which retention has removed records.
    """

    begin: Positions
    end: Positions
    read: bool
    bounded: frozenset[StreamName]
    removed: frozenset[StreamName]


@dataclass(frozen=True, slots=True)
class EventTimes:
    """Event times of records that are passed over.

    Args:
        largest: of those that were read, per partition that had any.
        bounds: upper bounds for the inputs that were not read, or only in part.
    """

    largest: Mapping[InputPartition, Millis] = field(default_factory=dict)
    bounds: Mapping[StreamName, Millis] = field(default_factory=dict)


def passed(
    marker: CommitMarker, earliest: Positions, ends: Positions, most: int = READ_MOST
) -> Passed:
    """What a lane passes over that goes on at the newest offsets.

    Records that were sent again are not passed over: users wait for them, and they are few. But
    those of a cut are, as all that it reads: results of them may be visible.

    Args:
        marker: the last one, with the present partitions.
        earliest: the oldest offset of each partition.
        ends: the ends of the partitions that carry streams, as far as every record is decided.
        most: maximum number of offsets whose event times are read.
    """
    reached = {**marker.end, **marker.reached}
    end = {at: Offset(max(offset, ends.get(at, offset))) for at, offset in reached.items()}
    begin = {
        at: Offset(min(end[at], max(offset, earliest.get(at, offset))))
        for at, offset in marker.end.items()
    }
    read = sum(end[at] - begin[at] for at in end) <= most
    untimed = frozenset(_untimed(marker))
    removed = frozenset(
        at.input
        for at in end
        if begin[at] > marker.end[at]
        or (at in untimed and marker.needed[at] < earliest.get(at, Offset(0)))
    )
    bounded = removed | {at.input for at in untimed}
    if not read:
        bounded |= {at.input for at in end if end[at] > begin[at]}
    return Passed(begin, end, read, frozenset(bounded), removed)


def _untimed(marker: CommitMarker) -> Iterator[InputPartition]:
    """Partitions with needed records whose event times the marker does not have.

    When the definition of an event time changes, it starts without progress.
    """
    for at, needed in marker.needed.items():
        if needed < marker.end.get(at, needed) and at not in marker.progress:
            yield at


def largest_time(has_one: Callable[[Millis], bool]) -> Millis | None:
    """The largest time at or after which there is a record; None: there is no record.

    `has_one`: whether there is one at or after a time.
    """
    if not has_one(Millis(0)):
        return None
    low, high = 0, 1
    while has_one(Millis(high)):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if has_one(Millis(middle)) else (low, middle)
    return Millis(low)


def after_gap(
    marker: CommitMarker,
    over: Passed,
    times: EventTimes,
    shape: Shape,
    begun: tuple[Incarnation, Millis],
) -> tuple[CommitMarker, Gap | None]:
    """The positions after a gap, as a marker, and the gap; None: no record before counts.

    Args:
        marker: the last one, with the present partitions.
        over: the records that are passed over.
        times: their event times.
        shape: what the lane computes.
        begun: the new incarnation, and the present wall time.
    """
    progress = dict(marker.progress)
    for at, largest_ms in times.largest.items():
        progress[at] = max(largest_ms, progress.get(at, largest_ms))
    newest = dict(times.bounds)
    for at, largest_ms in progress.items():
        newest[at.input] = max(largest_ms, newest.get(at.input, largest_ms))
    moved = replace(
        marker,
        start=over.end,
        end=over.end,
        needed=over.end,
        progress=progress,
        letters_from={},
        cut=None,  # what is not written of it is in the gap
    )
    found = (touched_until(shape, stream, ms) for stream, ms in newest.items())
    until = [ms for ms in found if ms is not None]
    if not until:  # the empty state is the right one, so the lane goes on where it was
        return replace(marker, start=marker.end, needed=marker.end, letters_from={}), None
    incarnation, now_ms = begun
    gap = Gap(
        incarnation=incarnation,
        omitted=_omitted(marker.end, over.end),
        since_ms=marker.boundary_ms,
        newest_ms=max(newest.values()),
        until_ms=max(until),
        written_at_ms=now_ms,
    )
    gap = _with_open(gap, marker.gap)
    return replace(moved, gap=gap), gap


def _omitted(begin: Positions, end: Positions) -> tuple[Omitted, ...]:
    """The ranges between positions; of inputs that share a topic, the longer one."""
    found: dict[tuple[TopicName, int], Omitted] = {}
    for at in sorted(end):
        if begin[at] < end[at]:
            place, one = (
                (at.topic, at.partition),
                Omitted(at.topic, at.partition, begin[at], end[at]),
            )
            known = found.get(place, one)
            found[place] = replace(one, begin=min(one.begin, known.begin))
    return tuple(found[place] for place in sorted(found))


def _with_open(gap: Gap, before: Gap | None) -> Gap:
    """The gap, with what an earlier one withholds that is still open.

    The promise has gone on since that, though no result at or below was published.
    """
    if before is None:
        return gap
    return replace(
        gap,
        since_ms=before.since_ms,
        newest_ms=max(gap.newest_ms, before.newest_ms),
        until_ms=max(gap.until_ms, before.until_ms),
    )


def touched_until(shape: Shape, stream: StreamName, newest_ms: Millis) -> Millis | None:
    """The largest event time of a result that a record may touch; None: there is no state.

    Args:
        shape: what the lane computes.
        stream: the input.
        newest_ms: the event time of the record.
    """
    match shape:
        case Windowed(window):
            return final_end(window, newest_ms)
        case Joined():
            return Millis(newest_ms + reach_ms(shape, stream))
        case Sessions(window):  # one that begins a gap later may go on until it is cut
            cut = ((newest_ms + window.gap_ms) // window.longest_ms + 1) * window.longest_ms
            return Millis(cut - 1 + window.gap_ms)
        case Stateless():
            return None


def withheld_ms(shape: Shape, gap: Gap | None) -> Millis | None:
    """The event time up to which a lane publishes no result; None: it publishes all.

    A box that does not wait adds right rows whatever is missing: a pair of two rows is one.
    """
    return gap.until_ms if gap is not None and shape.waits else None


def still_open(gap: Gap | None, boundary_ms: Millis | None) -> Gap | None:
    """The gap, as long as results may come that it touches: until the promise has passed them."""
    if gap is None or (boundary_ms is not None and boundary_ms >= gap.until_ms):
        return None
    return gap
