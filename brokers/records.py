"""What goes into and comes out of Kafka, as plain facts without the driver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.ids import Millis, Offset, TopicName

Headers = tuple[tuple[str, bytes | None], ...]
"""Kafka headers in the order they were written; a name may occur more than once."""

Ends = Mapping[TopicName, Mapping[int, Offset]]
"""An offset for every partition of some topics."""


def bytes_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """How many bytes the names and values of headers have."""
    return sum(len(name.encode()) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """One record as it lies in a topic. `timestamp_ms` is -1 when the broker has none."""

    topic: TopicName
    partition: int
    offset: Offset
    timestamp_ms: Millis
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class NewTopicSpec:
    """A topic to create; `config` are Kafka topic settings."""

    name: TopicName
    partitions: int
    replication: int
    config: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic that exists. A topic that is deleted and made again gets another `topic_id`."""

    topic: TopicName
    topic_id: str
    partitions: int


EVERYBODY: Final = "User:*"
"""A principal that stands for every one."""
ANYWHERE: Final = "*"
"""A host that stands for every one."""


@dataclass(frozen=True, slots=True)
class TopicRule:
    """One entry of the brokers' access control lists about topics, in Kafka's words.

    Args:
        topics: the name of one; `*`: all; if `prefixed`, how the names begin.
        prefixed: whether it is about all topics whose names begin so.
        principal: whom it is about: `User:medusa`, or `EVERYBODY`.
        host: from which host, or `ANYWHERE`.
        operation: `WRITE`, `ALL`, …
        allows: whether it gives the right; else it takes it away, whatever else gives it.
    """

    topics: str
    prefixed: bool
    principal: str
    host: str
    operation: str
    allows: bool
