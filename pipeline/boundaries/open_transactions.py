"""Transactions that are open for long, at which a lane waits."""

from dataclasses import dataclass

from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime, finished_in
from pipeline.ids import Offset, SteadyMillis, TopicName

OPEN_LONG_MS = 10_000
"""How long a transaction may be open before `status` names it: a producer that writes batch after
batch always has one open, each for much less time."""


@dataclass(frozen=True, slots=True, order=True)
class HeldOpen:
    """A long-open transaction at which the lane waits: all records before it are finished.

    Args:
        topic: its topic.
        partition: its partition.
        offset: its first record.
        since_ms: since when it is observed (steady time).
    """

    topic: TopicName
    partition: int
    offset: Offset
    since_ms: SteadyMillis


def held_open(time: LaneTime, ends: Ends | None, now_ms: SteadyMillis) -> tuple[HeldOpen, ...]:
    """Long-open transactions at which the lane waits, sorted."""
    if ends is None:
        return ()
    found: set[HeldOpen] = set()
    for lane_input in time.profile.inputs:
        for partition, position in finished_in(time.positions, lane_input).items():
            since_ms = ends.open.get((lane_input.topic, partition))
            end = ends.by_topic.get(lane_input.topic, {}).get(partition)
            if since_ms is None or end is None or position < end:
                continue
            if now_ms - since_ms >= OPEN_LONG_MS:
                found.add(HeldOpen(lane_input.topic, partition, end, since_ms))
    return tuple(sorted(found))
