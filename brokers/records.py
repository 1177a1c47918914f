"""Kafka records, topics and access control entries as plain data, independent of the driver."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.ids import Millis, Offset, TopicName

Headers = tuple[tuple[str, bytes | None], ...]
"""Record headers in their order; a name may occur more than once."""

Ends = Mapping[TopicName, Mapping[int, Offset]]
"""An offset per partition of each topic."""


def bytes_of(headers: Iterable[tuple[str, bytes | None]]) -> int:
    """The size of headers in bytes: names and values."""
    return sum(len(name.encode()) + len(value or b"") for name, value in headers)


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """One record of a topic. `timestamp_ms` is -1 if the broker has none."""

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
    """An existing topic. A topic that is deleted and created again gets another `topic_id`.

    `replication`: the number of replicas, in sync or not, of the partition that has the fewest.
    """

    topic: TopicName
    topic_id: str
    partitions: int
    replication: int


MADE_AGAIN: Final = "was deleted and made again"
"""What messages say about a topic with another `topic_id` than expected."""
EVERYBODY: Final = "User:*"
"""The principal that matches all principals."""
ANYWHERE: Final = "*"
"""The host that matches all hosts."""


@dataclass(frozen=True, slots=True)
class TopicRule:
    """One access control entry about topics, with Kafka's names.

    Args:
        topics: the name of a topic; `*`: all; if `prefixed`, a prefix of names.
        prefixed: whether it applies to all topics whose names have the prefix.
        principal: `User:medusa`, or `EVERYBODY`.
        host: the client's host, or `ANYWHERE`.
        operation: `WRITE`, `ALL`, …
        allows: whether it allows the operation; else it denies it, which takes precedence.
    """

    topics: str
    prefixed: bool
    principal: str
    host: str
    operation: str
    allows: bool
