"""Boundary and advance records: what travels between lanes and agents about event time."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.ids import Epoch, Incarnation, Millis, Offset, TopicId


@dataclass(frozen=True, slots=True)
class BoundaryRecord:
    """A writer's promise about a derived topic, in `<topic>.boundaries`; its Kafka key is `writer`.

    After `positions` (every partition of the topic that the writer ever wrote to), no more records
    of this writer with event time at or below `boundary_ms`. `topic_id` is Kafka's id of the
    derived topic: a topic of the same name that is created later has another one.
    """

    topic_id: TopicId
    writer: str
    epoch: Epoch
    boundary_ms: Millis
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class AdvanceRecord:
    """What an agent tells one incarnation of a lane: event time may move to `advance_ms`."""

    incarnation: Incarnation
    advance_ms: Millis
