"""A record that has to go to the dead letters."""

from dataclasses import dataclass

from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.spark.hidden import Reason


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be processed, byte for byte, and why."""

    input: StreamName
    port: str
    """The path in which it failed; empty: in all of them, since it could not be judged at all."""
    reason: Reason
    box: str
    topic: TopicName
    partition: int
    offset: Offset
    timestamp_ms: Millis
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
