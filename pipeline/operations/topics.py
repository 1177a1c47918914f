"""Ends and committed records of topics."""

from collections.abc import Iterator, Mapping

from brokers.records import KafkaRecord
from pipeline.errors import RefusedError
from pipeline.ids import Offset, TopicName
from pipeline.operations.connections import Connections


def topic_ends(topic: TopicName, connections: Connections) -> Mapping[int, Offset]:
    """The committed end of each partition of a topic.

    Raises:
        RefusedError: the topic does not exist.
    """
    ends = connections.topics.end_offsets([topic]).get(topic)
    if ends is None:
        raise RefusedError(
            "the topic does not exist",
            place=f"topic {topic}",
            hint="`medusa deploy` creates what is missing.",
        )
    return ends


def committed_records(
    topic: TopicName, ends: Mapping[int, Offset], connections: Connections
) -> Iterator[KafkaRecord]:
    """The committed records of a topic below these ends, in order within a partition.

    Raises:
        UnavailableError, RetryError: Kafka does not answer, or an end was not reached.
    """
    reader = connections.reader()
    reader.assign(connections.topics.start_offsets([topic]))
    yield from reader.read_to({topic: ends})
