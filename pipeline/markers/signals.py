"""Boundary and activity records: event-time messages of a lane to the readers of its output."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.ids import Epoch, Millis, Offset, TopicId


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
    """Activity report of a writer's agent about its lane; see `activity_key`.

    `idle`: all inputs of the lane are idle, and its state can emit nothing without a new record. It
    is valid for a few seconds, so it is repeated as long as it holds.
    """

    topic_id: TopicId
    writer: str
    epoch: Epoch
    idle: bool


_ACTIVITY = b"/activity"


def activity_key(writer: str) -> bytes:
    """The Kafka key of a writer's activity reports; the key of its boundaries is its name."""
    return writer.encode() + _ACTIVITY


def is_activity(key: bytes | None) -> bool:
    """Whether a record of a boundary topic is an activity report."""
    return key is not None and key.endswith(_ACTIVITY)
