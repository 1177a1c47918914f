"""Transactional producer: records of a batch become visible together, or not at all.

`retry.backoff.ms` is 10: a transaction that begins while the broker still completes the last one
has to retry, and with librdkafka's default of 100 that is most of the duration of a small one.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from brokers.kafka.config import RECORD_BYTES_MAX, client_config
from brokers.kafka.errors import medusa_error, translated, undelivered
from brokers.kafka.servers import Brokers
from brokers.kafka_interface import ANY_PARTITION, TRANSACTION_MS, KeyedValue
from brokers.records import Headers, bytes_of
from pipeline.clock import Deadline
from pipeline.errors import MedusaError, RefusedError, UnavailableError
from pipeline.ids import TopicName, TransactionalId

_QUEUE_RECORDS = 2_000_000
_QUEUE_KBYTES = 512_000
_POLL_S = 0.05
_FLUSH_S = 0.5
_METADATA_S = 10.0
_FIRST_TRY_S = 0.15
_REASON_S = 0.5
"""A call may fail shortly before the delivery report of the record that is the reason."""


class TransactionalWriter:
    """A transactional producer: a `TransactionWriter`.

    A transaction that is open for longer than `transaction_ms` is aborted by the broker.
    """

    def __init__(
        self,
        brokers: Brokers,
        transactional_id: TransactionalId,
        transaction_ms: int = TRANSACTION_MS,
    ) -> None:
        settings = client_config(
            brokers,
            transactional_id=transactional_id,
            retry_backoff_ms=10,
            retry_backoff_max_ms=200,
            partitioner="murmur2_random",
            queue_buffering_max_messages=_QUEUE_RECORDS,
            queue_buffering_max_kbytes=_QUEUE_KBYTES,
            transaction_timeout_ms=transaction_ms,
            message_max_bytes=RECORD_BYTES_MAX,
            delivery_report_only_error=True,
        )
        self._settings = {**settings, "on_delivery": self._on_delivery}
        self._producer = Producer(self._settings)
        self._refused: RefusedError | None = None
        self._fatal: MedusaError | None = None
        self._headers_bytes = 0
        self._id = transactional_id

    def start(self, deadline: Deadline) -> None:
        """Fence every older instance and wait until its last transaction has ended.

        While that is being aborted, the broker asks for a retry, which the driver does only after
        half a second, whatever its settings; a new producer sends its request at once.
        """
        with translated(f"starting transactions of {self._id}"):
            try:
                self._producer.init_transactions(min(_FIRST_TRY_S, deadline.remaining_s()))
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._producer = Producer(self._settings)
                self._producer.init_transactions(deadline.remaining_s())

    def begin(self) -> None:
        """Open a transaction."""
        self._refused, self._headers_bytes = None, 0
        with translated(f"beginning a transaction of {self._id}"):
            self._producer.begin_transaction()

    def send(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp_ms: int,
        headers: Headers = (),
        partition: int = ANY_PARTITION,
    ) -> None:
        """Add one record."""
        self._headers_bytes = max(self._headers_bytes, bytes_of(headers))
        with self._writing(topic):
            self._enqueue(topic, key, value, timestamp_ms, partition, headers)

    def send_many(
        self, topic: TopicName, records: Iterable[KeyedValue], headers: Headers = ()
    ) -> int:
        """Add many records, all with the same headers; returns how many."""
        count = 0
        own: list[tuple[str, str | bytes | None]] = list(headers)
        produce = self._producer.produce
        with self._writing(topic):
            for key, value, timestamp_ms, partition in records:
                count += 1
                try:
                    produce(topic, value, key, partition, timestamp=timestamp_ms, headers=own)
                except BufferError:
                    self._enqueue(topic, key, value, timestamp_ms, partition, headers)
        return count

    def refresh_partitions(self, topic: TopicName) -> None:
        """Refresh the metadata of a topic, which the driver does by itself only later."""
        with translated(f"asking for the partitions of {topic}"):
            self._producer.list_topics(topic, _METADATA_S)

    @contextmanager
    def _writing(self, topic: TopicName) -> Iterator[None]:
        """Raise the reason of the failure: after it the driver only rejects records."""
        try:
            with translated(f"writing to {topic}"):
                yield
        except MedusaError as error:
            raise self._reason(error) from error

    def _enqueue(
        self,
        topic: TopicName,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        partition: int,
        headers: Headers,
    ) -> None:
        for _ in range(1200):
            try:
                self._producer.produce(
                    topic, value, key, partition, timestamp=timestamp_ms, headers=list(headers)
                )
            except BufferError:
                self._producer.poll(_POLL_S)
            else:
                return
        raise UnavailableError(f"the queue to Kafka stayed full for {int(1200 * _POLL_S)} s")

    def commit(self, deadline: Deadline) -> None:
        """Make the transaction visible."""
        try:
            with translated(f"committing a transaction of {self._id}"):
                self._await_delivery(deadline)
                self._producer.commit_transaction(deadline.remaining_s())
        except MedusaError as error:
            raise self._reason(error) from error

    def _await_delivery(self, deadline: Deadline) -> None:
        """Wait until the broker has accepted all records, or has refused one.

        A commit waits for that as well. But once the broker has refused a record, the driver may
        keep those after it in its queue until the transaction is aborted; and a transaction that is
        being committed cannot be aborted.
        """
        while self._producer.flush(min(_FLUSH_S, deadline.remaining_s())):
            if self._refused is not None:
                raise self._refused
            if deadline.passed:
                raise UnavailableError(
                    "Kafka did not take all records in time",
                    place=f"committing a transaction of {self._id}",
                    hint="is the broker running, and is kafka.bootstrap_servers right?",
                )

    def abort(self, deadline: Deadline) -> None:
        """Abort the transaction; its records are never visible to a read_committed reader."""
        with translated(f"aborting a transaction of {self._id}"):
            self._producer.abort_transaction(deadline.remaining_s())

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        """Store the failed record, which the error of the whole transaction does not contain."""
        if error is None or self._refused is not None:
            return
        found = undelivered(error, message, headers=self._headers_bytes)
        if isinstance(found, RefusedError):
            self._refused = found

    def _reason(self, error: MedusaError) -> MedusaError:
        """The reason of a failed call, which the driver reports by callback.

        It raises a fatal error of the producer only once, here; later calls do not contain it.
        """
        for wait_s in (0, _REASON_S):
            if self._refused is None and self._fatal is None:
                self._poll(wait_s, error.place)
        return self._refused or self._fatal or error

    def _poll(self, wait_s: float, place: str) -> None:
        try:
            self._producer.poll(wait_s)
        except KafkaException as fatal:
            self._fatal = self._fatal or medusa_error(fatal, place)

    def close(self) -> None:
        """Close the connection; the next epoch aborts an open transaction."""
        try:
            self._producer.purge()
            self._producer.flush(_POLL_S)
        except (KafkaException, RuntimeError):
            return
