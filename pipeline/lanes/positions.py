"""Positions: how far something has read, per (input, topic, partition)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.ids import Offset, StreamName, TopicName


@dataclass(frozen=True, slots=True, order=True)
class InputPartition:
    """One partition of one topic, as one input of a fragment reads it."""

    input: StreamName
    topic: TopicName
    partition: int


Positions = Mapping[InputPartition, Offset]
"""The next offset to read, for every partition that a lane is assigned."""


def by_topic(
    positions: Positions, topics: Collection[TopicName]
) -> dict[TopicName, dict[int, Offset]]:
    """Positions in some topics, without their inputs, sorted.

    Where two inputs share a topic, the one that is further behind counts: who begins there misses
    nothing.
    """
    found: dict[TopicName, dict[int, Offset]] = {}
    for at, offset in sorted(positions.items()):
        if at.topic in topics:
            known = found.setdefault(at.topic, {})
            known[at.partition] = min(offset, known.get(at.partition, offset))
    return found
