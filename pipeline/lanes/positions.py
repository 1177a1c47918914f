"""Positions: how far something has read, per (input, topic, partition)."""

from collections.abc import Mapping
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
