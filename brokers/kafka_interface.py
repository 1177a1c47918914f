"""Interface of Kafka: administration of topics and groups, readers, writers.

`brokers/kafka/` implements it on brokers, `brokers/memory_kafka/` in memory; one conformance suite
runs against both. Every call raises `UnavailableError` when the brokers do not answer in time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Final, Protocol, Self

from brokers.records import Ends, Headers, KafkaRecord, NewTopicSpec, TopicDescription
from pipeline.clock import Deadline
from pipeline.errors import MedusaError, RefusedError, RetryError
from pipeline.ids import GroupName, Millis, Offset, TopicName, TransactionalId

ANY_PARTITION: Final = -1
"""The partition of the key's murmur2 hash, as in the Java clients; without a key, any partition."""
BEGINNING: Final = Offset(-2)
"""Assigned instead of an offset: the oldest record of the partition."""
POLL_RECORDS_MAX: Final = 2_000
FETCH_WAIT_MS: Final = 100
"""How long a broker delays the answer to a fetch without records; a new record ends the delay."""
FETCH_WAIT_RANGE_MS: Final = 2
"""The same for a range with an end, where a fetch without records shows that none is left."""
TRANSACTION_MS: Final = 60_000
"""How long a transaction may be open before the broker aborts it."""

Place = tuple[TopicName, int]
"""A partition: topic and number."""
KeyedValue = tuple[bytes | None, bytes, int, int]
"""A record to write: key, value, timestamp in ms, partition or `ANY_PARTITION`."""


class NotNowError(RetryError):
    """Kafka cannot execute the request now: an election, an unavailable replica, a quota."""

    code = "not-now"
    external = True


class GaveUpError(NotNowError):
    """The client gave up without an error: perhaps another instance has taken over."""


class NoSuchTopicError(RefusedError):
    """The topic or the partition does not exist."""

    code = "no-such-topic"
    external = True


class NoSuchGroupError(RefusedError):
    """The consumer group does not exist."""

    code = "no-such-group"


class TopicExistsError(RefusedError):
    """The topic exists already."""

    code = "topic-exists"


class OffsetGoneError(RefusedError):
    """The offset is not in the partition: removed by retention, or the topic was recreated."""

    code = "offset-gone"


class RecordTooLargeError(RefusedError):
    """The topic, or the broker, rejects a record of this size."""

    code = "record-too-large"


class Isolation(Enum):
    """Isolation level of reads: records of committed transactions only, or all records."""

    COMMITTED = "committed"
    UNCOMMITTED = "uncommitted"


@dataclass(frozen=True, slots=True)
class Describing:
    """A pending request to describe topics.

    Args:
        done: whether the answer has arrived.
        result: the answer, as `describe` returns it; waits for it, and raises as `describe` does.
    """

    done: Callable[[], bool]
    result: Callable[[], Mapping[TopicName, TopicDescription]]


class TopicAdmin(Protocol):
    """Administration of topics and consumer groups; thread-safe.

    Existing topics are never changed. Answers about several topics omit those that do not exist;
    answers about offsets also those with a partition that has no leader now.
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
        """Delete topics with all their records, and wait until they are gone.

        Returns:
            The names of those that existed.
        """

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Id, number of partitions and replication of each topic."""

    def begin_describing(self, topics: Iterable[TopicName]) -> Describing:
        """Send a request to describe topics; does not wait. The answer is newer than the call."""

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """All effective settings of each topic, defaults included."""

    def end_offsets(
        self, topics: Iterable[TopicName], isolation: Isolation = Isolation.COMMITTED
    ) -> Ends:
        """End of each partition: the next offset to be written, or (committed) to be visible."""

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
        """Per partition the offset of the first record at or after a time, by Kafka timestamp.

        For a partition without such a record it is the committed end.

        Raises:
            NoSuchTopicError: the topic does not exist.
        """

    def await_decided(self, topic: TopicName) -> bool:
        """Wait until the end of every transaction that has written to a topic is visible in it.

        Kafka acknowledges a commit once it is durable, before it is visible in each partition.

        Returns:
            False if one was still open at the deadline, or the ends cannot be read.
        """

    def delete_records(self, topic: TopicName, before: Mapping[int, Offset]) -> None:
        """Delete the records below an offset in each of some partitions.

        Raises:
            UnavailableError: a partition does not exist, or has no leader now.
            OffsetGoneError: the offset is beyond the end.
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
        """Per assigned partition the next offset to read; gaps at the end are skipped."""

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
        """New records; waits at most `timeout_s` for the first one, then returns all available.

        Raises:
            NoSuchTopicError: an assigned topic or partition does not exist.
            OffsetGoneError: the offset to read is not in the partition any more.
        """

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The records of the assigned partitions up to these ends (exclusive).

        Assigned partitions without an end are not read.

        Raises:
            NoSuchTopicError, OffsetGoneError: as by `poll`.
            NotNowError: no new record came in time, although the ends were not reached.
        """

    def close(self) -> None:
        """Close the connection. A second call does nothing."""


class TransactionWriter(Protocol):
    """Transactional producer; a newer one with the same transactional id fences this one.

    Every method may raise `FencedError` once another instance has started, `commit` does so at the
    latest; after `RetryError` the transaction has to be repeated.
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

    def refresh_partitions(self, topic: TopicName) -> None:
        """Refresh the number of partitions of a topic."""

    def commit(self, deadline: Deadline) -> None:
        """Make the transaction visible.

        Raises:
            RefusedError: a topic rejected one of its records; abort it.
        """

    def abort(self, deadline: Deadline) -> None:
        """Abort the transaction; its records are never visible to readers of committed records."""

    def close(self) -> None:
        """Close the connection; the next writer aborts an open transaction."""


class RecordWriter(Protocol):
    """Idempotent producer of single records, in order. Not thread-safe."""

    @property
    def undelivered(self) -> int:
        """Number of deliveries that have failed since the last flush."""

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
        """Send one record; returns before it is delivered. Without a timestamp: the present time.

        Raises:
            RefusedError: the topic does not exist, or the record cannot be sent.
            RetryError: the queue stayed full.
        """

    def flush(self, timeout_s: float) -> None:
        """Wait until every record sent so far is delivered.

        Raises:
            MedusaError: deliveries failed since the last flush; the class is that of the first.
            RetryError: the timeout passed before all records were delivered.
        """

    def close(self) -> None:
        """Discard undelivered records and close the connection; `flush` first."""


class GroupWriter(Protocol):
    """Sets the offsets of a consumer group that has no members; one request at a time."""

    def commit(self, offsets: Ends, done: Callable[[MedusaError | None], None]) -> None:
        """Begin to set offsets; does not wait. `done` is called once, by this call or by `poll`."""

    def poll(self) -> None:
        """Take in an answer, if there is one; does not wait."""

    def close(self) -> None:
        """Close the connection."""


@dataclass(frozen=True, slots=True)
class EndsAnswer:
    """End offsets of the partitions whose leaders answered one request in time.

    Args:
        asked_at_s: monotonic time just before the requests, in seconds.
        stable: last stable offsets; same partitions as `written`.
        written: log end offsets.
        late: last stable offsets from answers to earlier requests that were missing then. They are
            lower bounds of the present ones, and do not show that a leader answers now.
        missing: existing partitions without an answer to this request, and those without a leader.
    """

    asked_at_s: float
    stable: Ends
    written: Ends
    late: Ends
    missing: frozenset[Place]


class EndsReader(Protocol):
    """Reads end offsets from each partition leader separately. Not thread-safe; close it.

    A leader that does not answer takes the whole time of one read, and no time of later reads until
    it has answered: its partitions are missing meanwhile.
    """

    def read(self, topics: Iterable[TopicName], within_s: float) -> EndsAnswer:
        """The last stable offsets and the log end offsets of topics.

        Topics that do not exist are absent. So are topics that this reader has not yet found in
        Kafka's metadata, which it requests in the background; only if it has found none of the
        topics, the read waits for them. Does not raise when Kafka does not answer.

        Args:
            topics: names.
            within_s: the longest wait for answers, in seconds.
        """

    def close(self) -> None:
        """Close the connections; requests without an answer are dropped. May be repeated."""


class KafkaCluster(Protocol):
    """Opens readers and writers of one cluster, each with its own connection."""

    def reader(
        self,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
    ) -> RecordReader:
        """A reader.

        Args:
            timeout_s: timeout for reconnecting to unreachable brokers, and for a range that returns
                no new record.
            isolation: whether records of open and aborted transactions are read too.
            fetch_wait_ms: see `FETCH_WAIT_MS`.
        """

    def transactions(
        self, transactional_id: TransactionalId, transaction_ms: int = TRANSACTION_MS
    ) -> TransactionWriter:
        """A transactional writer, not started; the broker aborts after `transaction_ms`."""

    def producer(self, timeout_s: float) -> RecordWriter:
        """A writer of single records; a delivery that takes longer than `timeout_s` has failed."""

    def group_writer(self, group: GroupName) -> GroupWriter:
        """A writer of a group's offsets; it connects with its first request."""

    def ends_reader(self) -> EndsReader:
        """A reader of end offsets."""


def complete(found: Ends, topics: Iterable[TopicName]) -> Ends:
    """Check that an answer about offsets contains all these topics, and return it.

    Raises:
        NotNowError: a topic is missing: it does not exist, or a partition has no leader now.
    """
    missing = sorted(set(topics) - found.keys())
    if missing:
        raise NotNowError(
            "a partition of it has no leader now, or it does not exist",
            place=f"topic {missing[0]}",
            hint="is a broker away?",
        )
    return found
