"""Boundary, activity and advance records: what travels between lanes and agents of event time."""

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
class ActivityRecord:
    """What a writer's agent says about its lane, beside its boundaries; see `activity_key`.

    `idle`: all inputs of the lane are idle, and nothing that it keeps can come out without a new
    record. It counts for a few seconds, so it is said again as long as it holds.
    """

    topic_id: TopicId
    writer: str
    epoch: Epoch
    idle: bool


_ACTIVITY = b"/activity"


def activity_key(writer: str) -> bytes:
    """The Kafka key of a writer's activity; that of its boundaries is its name."""
    return writer.encode() + _ACTIVITY


def is_activity(key: bytes | None) -> bool:
    """Whether a record of a topic of boundaries is about a writer's activity."""
    return key is not None and key.endswith(_ACTIVITY)


@dataclass(frozen=True, slots=True)
class AdvanceRecord:
    """What an agent tells one incarnation of a lane: event time may move to `advance_ms`."""

    incarnation: Incarnation
    advance_ms: Millis
