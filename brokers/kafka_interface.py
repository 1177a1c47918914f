"""Kafka as Medusa uses it: administration of topics and groups, reading, writing.

`brokers/kafka/` is the real one, `brokers/memory_kafka/` the one in memory; one conformance suite
runs against both. Every call raises `UnavailableError` when the brokers do not answer in time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Protocol, Self

from brokers.records import Ends, Headers, KafkaRecord, NewTopicSpec, TopicDescription
from pipeline.clock import Deadline
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import GroupName, Millis, Offset, TopicName, TransactionalId

ANY_PARTITION: Final = -1
"""By the key's murmur2 hash, as the Java clients choose; any partition without a key."""
BEGINNING: Final = Offset(-2)
"""Assigned instead of an offset: the oldest record that the partition holds."""
POLL_RECORDS_MAX: Final = 2_000
FETCH_WAIT_MS: Final = 100
"""How long a broker holds a fetch that finds nothing; a new record ends the wait at once."""
FETCH_WAIT_RANGE_MS: Final = 2
"""The same for a range with an end: only a fetch that finds nothing shows that nothing is left."""
TRANSACTION_MS: Final = 60_000
"""How long a transaction may be open before the broker aborts it."""

KeyedValue = tuple[bytes | None, bytes, int, int]
"""A record to write: key, value, timestamp in ms, partition or `ANY_PARTITION`."""


class NotNowError(RetryError):
    """Kafka answers, but cannot do it now: an election, a replica that is away, a quota."""

    code = "not-now"
    external = True


class NoSuchTopicError(RefusedError):
    """The topic, or the partition of it, does not exist."""

    code = "no-such-topic"
    external = True


class NoSuchGroupError(RefusedError):
    """The consumer group does not exist."""

    code = "no-such-group"


class TopicExistsError(RefusedError):
    """The topic exists already."""

    code = "topic-exists"


class OffsetGoneError(RefusedError):
    """The offset is not in the partition: removed by retention, or the topic was made again."""

    code = "offset-gone"


class RecordTooLargeError(RefusedError):
    """The topic, or the broker, does not take a record of this size."""

    code = "record-too-large"


class Isolation(Enum):
    """Which records count: those of committed transactions alone, or all that were written."""

    COMMITTED = "committed"
    UNCOMMITTED = "uncommitted"


@dataclass(frozen=True, slots=True)
class Describing:
    """A question about topics that was sent.

    Args:
        done: whether the answer is there.
        result: the answer, as `describe` gives it; waits for it, and raises as `describe` does.
    """

    done: Callable[[], bool]
    result: Callable[[], Mapping[TopicName, TopicDescription]]


class TopicAdmin(Protocol):
    """Administration of topics and consumer groups; thread-safe.

    What exists is never changed. Answers about several topics lack those that do not exist;
    answers about offsets also those of which a partition has no leader now.
    """

    def topic_names(self) -> tuple[TopicName, ...]:
        """All topics of the cluster that are not Kafka's own, sorted."""

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create the topics that do not exist; existing ones are left as they are.

        Returns when every topic can be written to, those that existed before included.

        Returns:
            The names of those created by this call, in the given order.

        Raises:
            RefusedError: Kafka does not accept a name, a number or a setting.
            RetryError: a topic did not become usable in time.
        """

    def delete_topics(self, topics: Iterable[TopicName]) -> tuple[TopicName, ...]:
        """Delete topics with all they hold, and wait until they are gone.

        Returns:
            The names of those that existed.
        """

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Id and number of partitions of each topic."""

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """Send a request to describe topics; does not wait. The answer is no older than this."""

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """All settings in force of each topic, defaults included."""

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """End of each partition: the next offset to be written, or (committed) to be visible."""

    def both_ends(self, topics: Iterable[TopicName]) -> tuple[Ends, Ends]:
        """The last stable offsets of topics, and the next offsets to be written.

        They differ where a transaction is open.
        """

    def partition_ends(
        self, topic: TopicName, partitions: int, isolation: Isolation
    ) -> Mapping[int, Offset]:
        """Ends of the partitions of one topic, when their number is known: one request.

        Raises:
            NotNowError: a partition has no leader now, or does not exist.
            UnavailableError: the topic does not exist.
        """

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The oldest offset of each partition."""

    def offsets_for_time(self, topic: TopicName, time_ms: Millis) -> Mapping[int, Offset]:
        """Per partition the first record at or after a time, by Kafka timestamp.

        A partition without such a record gives its committed end.

        Raises:
            NoSuchTopicError: the topic does not exist.
        """

    def await_decided(self, topic: TopicName) -> bool:
        """Wait until every transaction that has written to a topic before has ended, visibly.

        Kafka acknowledges a commit as soon as it is certain, before each partition shows it.

        Returns:
            False if one was still open at the deadline, or the ends cannot be read.
        """

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Remove the records of some partitions below an offset each, for good.

        Raises:
            UnavailableError: a partition does not exist, or has no leader now.
            OffsetGoneError: the offset is beyond the end.
        """

    def begin_setting_offsets(
        self, group: GroupName, positions: Mapping[TopicName, Mapping[int, Offset]]
    ) -> "Future[object]":
        """Begin to set the offsets of a group without members; does not wait.

        Returns:
            A future that ends when it is done or, within the usual time, has failed.
        """

    def delete_group(self, group: GroupName) -> bool:
        """Delete a consumer group without members; False if there is none of this name."""


class RecordReader(Protocol):
    """Reads assigned partitions from given offsets, without a group. Not thread-safe.

    Offsets do not count records: transaction markers, aborted records and compaction leave gaps.
    Close it, or use it in `with`.
    """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    @property
    def positions(self) -> Ends:
        """Per assigned partition the next offset to read; gaps at the end are passed over."""

    def assign(self, starts: Ends) -> None:
        """Read these partitions from these offsets, and no others."""

    def bounds(self, topic: TopicName, partition: int) -> tuple[Offset, Offset]:
        """The oldest offset of a partition, and its end as this reader's isolation sees it.

        Raises:
            NoSuchTopicError: the topic or the partition does not exist.
            NotNowError: a partition of the topic has no leader now.
        """

    def poll(
        self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
    ) -> tuple[KafkaRecord, ...]:
        """New records; waits at most `timeout_s` for the first one, then takes what is there.

        Raises:
            NoSuchTopicError: an assigned topic or partition does not exist.
            OffsetGoneError: the offset to read is not in the partition any more.
        """

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The records of the assigned partitions up to these ends (exclusive), then stop.

        Assigned partitions without an end are not read.

        Raises:
            NoSuchTopicError, OffsetGoneError: as by `poll`.
            NotNowError: nothing new came in time, although the ends were not reached.
        """

    def close(self) -> None:
        """Drop the connection. Closing twice does nothing."""


class TransactionWriter(Protocol):
    """Writes whole transactions; a newer writer with the same transactional id fences this one.

    Every method may raise `FencedError` once another instance has started, `commit` does so at the
    latest; `RetryError` means that the transaction has to be tried again.
    """

    def start(self, deadline: Deadline) -> None:
        """Fence every older instance and wait until its last transaction has ended."""

    def begin(self) -> None:
        """Open a transaction."""

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

    def send_many(
        self, topic: TopicName, records: Iterable[KeyedValue], headers: Headers = ()
    ) -> int:
        """Add many records, all with the same headers; returns how many."""

    def look_at(self, topic: TopicName) -> None:
        """Refresh how many partitions a topic has."""

    def commit(self, deadline: Deadline) -> None:
        """Make the transaction visible.

        Raises:
            RefusedError: a topic did not take one of its records; abort it.
        """

    def abort(self, deadline: Deadline) -> None:
        """Give the transaction up; no reader of committed records ever sees its records."""

    def close(self) -> None:
        """Drop the connection; an open transaction is left for the next writer to abort."""


class RecordWriter(Protocol):
    """Writes single records at once, each exactly once, in order. Not thread-safe."""

    @property
    def undelivered(self) -> int:
        """How many deliveries are known to have failed since the last flush."""

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
        """Send one record; returns before it is delivered. No timestamp: the present time.

        Raises:
            RefusedError: the topic does not exist, or the record cannot be sent at all.
            RetryError: the queue stayed full.
        """

    def flush(self, timeout_s: float) -> None:
        """Wait until every record sent so far is delivered.

        Raises:
            MedusaError: deliveries failed since the last flush; the kind says what to do.
            RetryError: the time was over with records still on the way.
        """

    def close(self) -> None:
        """Give up what is not delivered and drop the connection; `flush` first."""


class KafkaCluster(Protocol):
    """Opens readers and writers of one cluster, each with a connection of its own."""

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> RecordReader:
        """A reader.

        Args:
            timeout_s: limit for finding out whether an unreachable broker is back, and for a range
                that brings nothing new.
            isolation: whether records of open and aborted transactions are read too.
            fetch_wait_ms: see `FETCH_WAIT_MS`.
        """

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = TRANSACTION_MS
    ) -> TransactionWriter:
        """A transactional writer, to be started; the broker aborts after `transaction_ms`."""

    def producer(self, timeout_s: float) -> RecordWriter:
        """A writer of single records; a delivery that takes longer than `timeout_s` has failed."""


def complete(found: Ends, topics: Iterable[TopicName]) -> Ends:
    """The answer about offsets of topics all of which are needed.

    Raises:
        NotNowError: a topic is not in it: it does not exist, or a partition has no leader now.
    """
    missing = sorted(set(topics) - found.keys())
    if missing:
        raise NotNowError(
            "a partition of it has no leader now, or it does not exist",
            place=f"topic {missing[0]}",
            hint="is a broker away?",
        )
    return found
