"""Topic of heartbeats: one partition, so that they are in one order; ten minutes of them. Pure."""

from collections.abc import Callable
from typing import Final

from brokers.kafka_interface import RecordWriter, TopicAdmin
from brokers.records import NewTopicSpec
from pipeline.errors import MedusaError, RetryError
from pipeline.heartbeats.codec import encode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.ids import ParticipantId
from pipeline.names import heartbeats_topic

KEPT_MS: Final = 10 * 60_000
SEGMENT_MS: Final = 5 * 60_000
"""Kafka removes whole segments only."""
DEFAULT_REPLICATION: Final = -1
"""That of the brokers' setting `default.replication.factor`."""


def topic_spec(participant: ParticipantId) -> NewTopicSpec:
    """The topic of the heartbeats of a participant's nodes."""
    config = (
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", str(KEPT_MS)),
        ("segment.ms", str(SEGMENT_MS)),
    )
    return NewTopicSpec(heartbeats_topic(participant), 1, DEFAULT_REPLICATION, config)


class HeartbeatWriter:
    """Writes heartbeats; creates the topic if it does not exist. Not thread-safe.

    Args:
        participant: of the node.
        topics: Kafka's topics.
        open_producer: opens what writes the records; its delivery timeout is short, so that none
            comes late. One that cannot go on is replaced.
    """

    def __init__(
        self,
        participant: ParticipantId,
        topics: TopicAdmin,
        open_producer: Callable[[], RecordWriter],
    ) -> None:
        self._spec = topic_spec(participant)
        self._topics = topics
        self._open_producer = open_producer
        self._producer = open_producer()
        self._exists = False

    def send(self, heartbeat: Heartbeat) -> None:
        """Send a heartbeat; returns before it is delivered. After an error the next one is tried.

        Raises:
            MedusaError: the topic cannot be created or written, or earlier ones were not delivered.
        """
        if not self._exists:
            self._topics.create_topics((self._spec,))
            self._exists = True
        try:
            self._producer.send(
                self._spec.name, heartbeat.node.encode(), encode(heartbeat), partition=0
            )
            if self._producer.undelivered:
                self._producer.flush(0.0)  # raises their error
        except MedusaError as error:
            self._exists = False  # the next one looks again
            if type(error) is RetryError:  # the producer may have failed for good
                self._producer.close()
                self._producer = self._open_producer()
            raise

    def end(self, within_s: float) -> None:
        """Wait until what was sent is delivered, and close the producer.

        Raises:
            MedusaError: something was not delivered.
        """
        try:
            self._producer.flush(within_s)
        finally:
            self._producer.close()
