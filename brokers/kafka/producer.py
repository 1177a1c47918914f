"""Idempotent producer without transactions, for boundaries, activity and records sent by a user."""

from typing import Final

from confluent_kafka import KafkaError, Message, Producer

from brokers.kafka.config import RECORD_BYTES_MAX, client_config
from brokers.kafka.errors import translated, undelivered
from brokers.kafka.servers import Brokers
from brokers.kafka_interface import ANY_PARTITION
from brokers.records import Headers, bytes_of
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RetryError
from pipeline.ids import Millis, TopicName
from pipeline.system_clock import SystemClock

_FULL_WAIT_S: Final = 0.05


class PlainProducer:
    """An idempotent producer: a `RecordWriter`.

    Args:
        brokers: the cluster.
        timeout_s: the delivery timeout of a record.
    """

    def __init__(self, brokers: Brokers, timeout_s: float, clock: Clock | None = None) -> None:
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._failed = 0
        self._first_failure: MedusaError | None = None
        self._headers_bytes = 0
        self._producer = Producer(
            client_config(
                brokers,
                enable_idempotence=True,
                linger_ms=0,
                message_max_bytes=RECORD_BYTES_MAX,
                delivery_timeout_ms=max(1, int(timeout_s * 1000)),
                partitioner="murmur2_random",
            )
        )

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        headers: Headers = (),
        timestamp_ms: Millis | None = None,
        partition: int = ANY_PARTITION,
    ) -> None:
        """Send one record; waits at most `timeout_s` while the queue to Kafka is full."""
        deadline = Deadline.after(self._clock, self._timeout_s, f"sending to topic {topic}")
        self._headers_bytes = max(self._headers_bytes, bytes_of(headers))
        with translated(f"Kafka {self._brokers}, topic {topic}"):
            while True:
                try:
                    self._producer.produce(
                        topic,
                        value,
                        key,
                        partition,
                        on_delivery=self._on_delivery,
                        timestamp=timestamp_ms or 0,
                        headers=list(headers),
                    )
                except BufferError:
                    deadline.check("Kafka takes records more slowly than they come.")
                    self._producer.poll(_FULL_WAIT_S)
                else:
                    self._producer.poll(0)
                    return

    @property
    def undelivered(self) -> int:
        """Number of deliveries that have failed since the last flush."""
        self._producer.poll(0)
        return self._failed

    def flush(self, timeout_s: float) -> None:
        """Wait until every record sent so far is delivered."""
        left = self._producer.flush(timeout_s)
        failure, count = self._first_failure, self._failed
        self._first_failure, self._failed = None, 0
        if failure is not None:
            message = failure.message
            if count > 1:
                message = f"{count} records were not delivered; the first: {message}"
            raise type(failure)(message, place=failure.place, hint=failure.hint)
        if left:
            raise RetryError(
                f"{left} {'record was' if left == 1 else 'records were'} not delivered within "
                f"{timeout_s:g} s",
                place=f"Kafka {self._brokers}",
            )

    def close(self) -> None:
        """Discard undelivered records and close the connection; `flush` first."""
        self._producer.purge()
        self._producer.flush(_FULL_WAIT_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            return
        self._failed += 1
        if self._first_failure is None:
            before = f"Kafka {self._brokers}, "
            self._first_failure = undelivered(error, message, before, self._headers_bytes)
