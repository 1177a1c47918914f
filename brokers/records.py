"""What goes into and comes out of Kafka, as plain facts without the driver."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.ids import Millis, Offset, TopicName

Headers = tuple[tuple[str, bytes | None], ...]
"""Kafka headers in the order they were written; a name may occur more than once."""

Ends = Mapping[TopicName, Mapping[int, Offset]]
"""An offset for every partition of some topics."""


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
