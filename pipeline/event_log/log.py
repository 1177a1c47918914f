"""The event log's topic: one partition, so that entries are in one order; 90 days of them."""

from collections.abc import Iterator
from typing import Final

from brokers.kafka_interface import RecordReader, RecordWriter, TopicAdmin
from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.errors import MedusaError, NewerFormatError
from pipeline.event_log.codec import NoEntryError, decode, encode
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import ParticipantId, TopicName
from pipeline.names import events_topic

KEPT_MS: Final = 90 * 24 * 3_600_000
"""Retention of a topic that is made; it may be changed in Kafka."""
DEFAULT_REPLICATION: Final = -1
"""That of the brokers' setting `default.replication.factor`."""

REPEATED_MAX: Final = 5_000
"""An entry that is sent again follows the first one within so many others."""


def topic_spec(participant: ParticipantId) -> NewTopicSpec:
    """The topic of a participant's event log."""
    config = (
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", str(KEPT_MS)),
    )
    return NewTopicSpec(events_topic(participant), 1, DEFAULT_REPLICATION, config)


class EventWriter:
    """Writes entries; creates the topic if it does not exist. Not thread-safe.

    Args:
        participant: whose event log.
        topics: Kafka's topics.
        producer: writes the records.
    """

    def __init__(
        self, participant: ParticipantId, topics: TopicAdmin, producer: RecordWriter
    ) -> None:
        self._spec = topic_spec(participant)
        self._topics = topics
        self._producer = producer
        self._exists = False

    def send(self, event: LoggedEvent) -> None:
        """Send an entry; returns before it is delivered.

        Raises:
            MedusaError: the topic cannot be created or written.
        """
        if not self._exists:
            self._topics.create_topics((self._spec,))
            self._exists = True
        try:
            self._producer.send(
                self._spec.name,
                event.subject.encode() or None,
                encode(event),
                timestamp_ms=event.at_ms,
                partition=0,
            )
        except MedusaError:
            self._exists = False  # the next one looks again
            raise

    def flush(self, within_s: float) -> None:
        """Wait until every entry is delivered.

        Raises:
            MedusaError: some were not.
        """
        try:
            self._producer.flush(within_s)
        except MedusaError:
            self._exists = False
            raise

    def close(self) -> None:
        """Close the producer."""
        self._producer.close()


class EventReader:
    """Reads entries; repeated ones, and records that are none, are left out. Not thread-safe.

    Args:
        reader: of the topic's only partition.
        topic: its name.
    """

    def __init__(self, reader: RecordReader, topic: TopicName) -> None:
        self._reader = reader
        self._topic = topic
        self._last: dict[LoggedEvent, None] = {}
        self.unreadable = 0
        """Number of records that are no entries, or ones of a later version."""

    def written(self) -> Iterator[LoggedEvent]:
        """The entries up to the present end of the topic, oldest first.

        Raises:
            NoSuchTopicError: nothing was logged yet.
        """
        begin, end = self._reader.bounds(self._topic, 0)
        self._reader.assign({self._topic: {0: begin}})
        if begin < end:
            for record in self._reader.read_to({self._topic: {0: end}}):
                yield from self._decoded(record)
        # A partition that was read to an end is not read on.
        self._reader.assign({self._topic: {0: max(begin, end)}})

    def next(self, within_s: float) -> tuple[LoggedEvent, ...]:
        """Those that follow what was read; waits for the first one, at most so long."""
        found = self._reader.poll(within_s)
        return tuple(event for record in found for event in self._decoded(record))

    def _decoded(self, record: KafkaRecord) -> Iterator[LoggedEvent]:
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            event = decode(record.value, place)
        except (NoEntryError, NewerFormatError):
            self.unreadable += 1
            return
        if event not in self._last:  # a writer sends again what may not have been delivered
            self._last[event] = None
            if len(self._last) > REPEATED_MAX:
                del self._last[next(iter(self._last))]
            yield event
