"""Take-over of tentative records by a fork: from a cut on, in place of stable ones. Pure.

Stable records and tentative ones of a window may both come, with different values, so each counts
on one side of the cut only. The cut is the boundary that the fork has read; it is taken between two
batches, and stays as long as the fork runs.
"""

from collections.abc import Mapping
from dataclasses import replace

from pipeline.boundaries.derived import WriterSeen, settled, with_boundary
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, finished_in
from pipeline.boundaries.profile import DerivedInput, ExternalInput
from pipeline.boundaries.tentative_input import TentativeInput
from pipeline.ids import Epoch, Offset, StreamName
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Stateless

_ANY: Epoch = Epoch(1)
"""Boundaries of one generation come from one fork, so their epoch decides nothing."""


def taken_over(time: LaneTime, end: Positions) -> LaneTime:
    """Take over what is offered, as far as it fits, and the boundaries of what was taken over.

    Args:
        time: of the fork, after its finished batches.
        end: the position of every partition after its last planned batch.
    """
    for one in time.steered.tentative:
        taken = time.taken.get(one.stream)
        if taken is None:
            time = _take(time, one) if _fits(time, one, end) else time
        elif taken.generation == one.generation:
            time = _with_boundary(time, one)
    return time


def begins(time: LaneTime, end: Positions) -> dict[InputPartition, Offset]:
    """The positions at which what was taken over begins, of partitions that are not there yet."""
    found = {
        InputPartition(one.stream, one.topic, partition): offset
        for one in time.taken.values()
        for partition, offset in one.begin.items()
    }
    return {at: offset for at, offset in found.items() if offset > end.get(at, offset)}


def seen(ends: Ends | None, time: LaneTime) -> Ends | None:
    """The ends up to which a fork reads: of what was taken over, the positions of its boundary.

    The stable records of the same inputs are not read any more. Partitions whose records are not
    answered are left out, as those of other inputs are. Without state nothing of external inputs is
    needed: what is made of them is stable.
    """
    if ends is None or not time.taken:
        return ends
    unread = {one.stream: one.stable for one in time.taken.values()}
    if isinstance(time.profile.shape, Stateless):
        external = (one for one in time.profile.inputs if isinstance(one, ExternalInput))
        unread |= {one.stream: one.topic for one in external}
    stable = {(at.topic, at.partition) for at in time.positions if unread.get(at.input) == at.topic}
    there = {one.topic: one.complete.positions for one in time.taken.values()}
    return replace(ends, by_topic={**ends.by_topic, **there}).without({*stable, *time.silent})


def _fits(time: LaneTime, one: TentativeInput, end: Positions) -> bool:
    """Whether all stable records up to the cut are read, and none after it."""
    found = _derived(time, one.stream)
    if found is None or dict(time.positions) != dict(end):
        return False
    later = any(
        ms > one.cut_ms
        for at, ms in time.progress.items()
        if at.input == one.stream and at.topic == found.topic
    )
    partitions = {at.partition for at in end if (at.input, at.topic) == (one.stream, one.topic)}
    is_there = partitions == one.begin.keys()
    return is_there and not later and time.writers[one.stream].covered_ms == one.cut_ms


def _take(time: LaneTime, one: TentativeInput) -> LaneTime:
    """Read the tentative topic from now on, and follow the boundaries of its generation."""
    profile = time.profile
    inputs = tuple(
        replace(other, topic=one.topic, writer=f"{other.writer}/{one.generation}")
        if isinstance(other, DerivedInput) and other.stream == one.stream
        else other
        for other in profile.inputs
    )
    time = replace(
        time,
        profile=replace(profile, inputs=inputs),
        taken={**time.taken, one.stream: one},
        writers={**time.writers, one.stream: WriterSeen(covered_ms=one.cut_ms)},
    )
    return _with_boundary(time, one)


def _with_boundary(time: LaneTime, one: TentativeInput) -> LaneTime:
    """The newest boundary of what was taken over; its cut stays."""
    taken = time.taken[one.stream]
    if taken.complete == one.complete and time.writers[one.stream].epoch is not None:
        return time
    found = _derived(time, one.stream)
    read: Mapping[int, Offset] = {} if found is None else finished_in(time.positions, found)
    writer = settled(with_boundary(time.writers[one.stream], _ANY, one.complete), read)
    return replace(
        time,
        taken={**time.taken, one.stream: replace(taken, complete=one.complete)},
        writers={**time.writers, one.stream: writer},
    )


def _derived(time: LaneTime, stream: StreamName) -> DerivedInput | None:
    return next(
        (
            one
            for one in time.profile.inputs
            if isinstance(one, DerivedInput) and one.stream == stream
        ),
        None,
    )
