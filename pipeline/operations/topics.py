"""Ends, committed records and first timestamps of topics."""

from collections.abc import Iterator, Mapping

from brokers.kafka.reader import TopicReader
from brokers.records import KafkaRecord
from pipeline.errors import RefusedError
from pipeline.ids import Millis, Offset, TopicName
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


def first_timestamp(
    topic: TopicName, partition: int, offsets: tuple[Offset, Offset], reader: TopicReader
) -> Millis | None:
    """The Kafka timestamp of the first record in a range of offsets; None for an empty range."""
    start, end = offsets
    if start >= end:
        return None
    reader.assign({topic: {partition: start}})
    first = next(iter(reader.read_to({topic: {partition: end}})), None)
    return None if first is None else first.timestamp_ms
