"""Offsets of a consumer group, set by a consumer that reads nothing: a `GroupWriter`.

The requests of librdkafka's admin client to a group's coordinator use memory that is freed already
when such a request fails during an outage (librdkafka#5397): the process then ends, or its admin
client gets no answer any more. A consumer's commits do not pass there.
"""

from collections.abc import Callable, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from brokers.kafka.config import client_config
from brokers.kafka.errors import medusa_error
from brokers.kafka.servers import Brokers, servers
from brokers.records import Ends
from pipeline.errors import MedusaError
from pipeline.ids import GroupName

COMMIT_MS: Final = 6_000
"""After that a commit without an answer has failed. While the coordinator is unknown, the driver
takes the session timeout for that, and `close` waits for it."""

Done = Callable[[MedusaError | None], None]


class GroupCommits:
    """Commits of one group, of which one is in flight; connects with the first one."""

    def __init__(self, brokers: Brokers, group: GroupName) -> None:
        self._brokers, self._group = brokers, group
        self._consumer: Consumer | None = None
        self._done: Done | None = None

    def commit(self, offsets: Ends, done: Done) -> None:
        """Send a request; `poll` calls `done`, or this call if it cannot be sent."""
        self._done = done
        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in offsets.items()
            for partition, offset in partitions.items()
        ]
        try:
            self._connected().commit(offsets=places, asynchronous=True)
        except KafkaException as error:
            self._answered(self._error(error))

    def poll(self) -> None:
        """Take in an answer, if there is one."""
        if self._consumer is not None:
            self._consumer.poll(0)

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _connected(self) -> Consumer:
        if self._consumer is None:
            settings = client_config(
                self._brokers,
                group_id=self._group,
                enable_auto_commit=False,
                socket_timeout_ms=COMMIT_MS,
                session_timeout_ms=COMMIT_MS,
                heartbeat_interval_ms=COMMIT_MS // 3,
            )
            self._consumer = Consumer({**settings, "on_commit": self._on_commit})
        return self._consumer

    def _on_commit(self, error: KafkaError | None, places: Sequence[TopicPartition]) -> None:
        failed = error or next((place.error for place in places if place.error), None)
        self._answered(None if failed is None else self._error(failed))

    def _answered(self, error: MedusaError | None) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(error)

    def _error(self, error: KafkaError | KafkaException) -> MedusaError:
        return medusa_error(error, f"Kafka {servers(self._brokers)}, group {self._group}")
