"""Writers of an in-memory Kafka: a transactional and a plain producer."""

from collections.abc import Iterable

from brokers.kafka_interface import ANY_PARTITION, KeyedValue, NoSuchTopicError
from brokers.memory_kafka.broker import MemoryBroker
from brokers.records import Headers
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis, TopicName, TransactionalId


class MemoryTransactions:
    """A `TransactionWriter`; every call raises `FencedError` once a newer writer has started."""

    def __init__(self, broker: MemoryBroker, transactional_id: TransactionalId) -> None:
        self._broker = broker
        self._id = transactional_id
        self._epoch = 0
        self._is_open = False

    def start(self, deadline: Deadline) -> None:
        """Fence every older instance and abort its transaction."""
        del deadline
        self._epoch = self._broker.next_epoch(self._id)

    def begin(self) -> None:
        """Open a transaction."""
        self._broker.check_epoch(self._id, self._epoch)
        if self._is_open:
            raise BrokenInvariantError("the last transaction has not ended", place=self._id)
        self._is_open = True

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
        self._write(topic, (key, value, timestamp_ms, partition), headers)

    def send_many(
        self, topic: TopicName, records: Iterable[KeyedValue], headers: Headers = ()
    ) -> int:
        """Add many records, all with the same headers; returns how many."""
        count = 0
        for record in records:
            self._write(topic, record, headers)
            count += 1
        return count

    def refresh_partitions(self, topic: TopicName) -> None:
        """Does nothing: the number of partitions is always current."""

    def commit(self, deadline: Deadline) -> None:
        """Make the transaction visible."""
        del deadline
        self._end(committed=True)

    def abort(self, deadline: Deadline) -> None:
        """Abort the transaction."""
        del deadline
        self._end(committed=False)

    def close(self) -> None:
        """Does nothing: the next writer aborts an open transaction."""

    def _write(
        self,
        topic: TopicName,
        record: tuple[bytes | None, bytes | None, int, int],
        headers: Headers,
    ) -> None:
        if not self._is_open:
            raise BrokenInvariantError("no transaction is open", place=self._id)
        broker, (key, value, timestamp_ms, partition) = self._broker, record
        with broker.lock:
            broker.check_epoch(self._id, self._epoch)
            written = broker.append(
                topic, key, value, timestamp_ms=timestamp_ms, headers=headers, partition=partition
            )
            broker.enlist(self._id, written)

    def _end(self, *, committed: bool) -> None:
        self._broker.end_transaction(self._id, self._epoch, committed=committed)
        self._is_open = False


class MemoryProducer:
    """A `RecordWriter`; deliveries fail if the topic does not exist."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._failures: list[NoSuchTopicError] = []

    @property
    def undelivered(self) -> int:
        """Number of deliveries that have failed since the last flush."""
        return len(self._failures)

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
        """Write one record."""
        try:
            self._broker.append(
                topic,
                key,
                value,
                timestamp_ms=timestamp_ms,
                headers=headers,
                partition=partition,
            )
        except NoSuchTopicError as error:
            self._failures.append(error)

    def flush(self, timeout_s: float) -> None:
        """Raise the first failure since the last flush."""
        del timeout_s
        failures, self._failures = self._failures, []
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Does nothing: every record is delivered or has failed."""
