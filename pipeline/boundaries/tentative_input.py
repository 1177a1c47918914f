"""Tentative records of a derived input, which a fork reads in place of the stable ones. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.boundaries.derived import PendingBoundary
from pipeline.ids import Millis, Offset, StreamName, TopicName


@dataclass(frozen=True, slots=True)
class TentativeInput:
    """One generation of tentative records of a derived input, after a cut.

    Up to the cut the stable records count, after it the tentative ones: none counts twice.

    Args:
        stream: the input.
        stable: the topic of its stable records.
        topic: that of its tentative ones.
        generation: of these records, as text.
        cut_ms: the event time of the cut.
        begin: of each partition the position of the first tentative record after the cut.
        complete: the boundary of the generation: all of its records after the cut and up to that
            event time are before these positions.
    """

    stream: StreamName
    stable: TopicName
    topic: TopicName
    generation: str
    cut_ms: Millis
    begin: Mapping[int, Offset]
    complete: PendingBoundary
