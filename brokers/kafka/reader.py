"""Consumer of assigned partitions: no group, no commits.

Offsets do not count records: transaction markers, aborted records and compaction leave gaps. So a
reader has passed an offset when it gets a record beyond it, or the event that the end of the
partition is beyond it; it never waits for a record at exactly that offset.
"""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.config import client_config
from brokers.kafka.errors import medusa_error, translated
from brokers.kafka.offset_answers import bounds_in
from brokers.kafka.servers import Brokers
from brokers.kafka_interface import (
    FETCH_WAIT_MS,
    POLL_RECORDS_MAX,
    Isolation,
    NoSuchTopicError,
    NotNowError,
    complete,
)
from brokers.records import Ends, KafkaRecord
from pipeline.clock import Clock, Deadline
from pipeline.errors import MedusaError, RetryError, UnavailableError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.names import READER_GROUP
from pipeline.system_clock import SystemClock

_POLL_S: Final = 0.1
_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the driver's own name of the code


class TopicReader:
    """One consumer: a `RecordReader`; the arguments are those of `KafkaCluster.reader`."""

    def __init__(
        self,
        brokers: Brokers,
        timeout_s: float,
        *,
        isolation: Isolation = Isolation.COMMITTED,
        fetch_wait_ms: int = FETCH_WAIT_MS,
        clock: Clock | None = None,
    ) -> None:
        self._brokers = brokers
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._isolation = isolation
        self._positions: dict[TopicName, dict[int, Offset]] = {}
        self._down = False
        settings = client_config(
            brokers,
            group_id=READER_GROUP,
            enable_auto_commit=False,
            enable_auto_offset_store=False,
            enable_partition_eof=True,
            auto_offset_reset="error",
            isolation_level=f"read_{isolation.value}",
            fetch_wait_max_ms=fetch_wait_ms,
            fetch_queue_backoff_ms=20,
            fetch_error_backoff_ms=50,
        )
        self._consumer = Consumer({**settings, "error_cb": self._on_error})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def positions(self) -> Ends:
        """Per assigned partition the next offset to read; gaps at the end are skipped."""
        return self._positions

    def assign(self, starts: Ends) -> None:
        """Read these partitions from these offsets, and no others."""
        self._positions = {topic: dict(offsets) for topic, offsets in starts.items()}
        with translated(self._place("assigning partitions")):
            self._consumer.assign(
                [
                    TopicPartition(topic, partition, offset)
                    for topic, offsets in starts.items()
                    for partition, offset in offsets.items()
                ]
            )

    def bounds(self, topic: TopicName, partition: int) -> tuple[Offset, Offset]:
        """The oldest offset of a partition, and its end as this reader's isolation sees it."""
        deadline = Deadline.after(self._clock, self._timeout_s, "asking for the bounds")
        while True:
            try:
                with translated(self._place(f"topic {topic}, partition {partition}")):
                    start, end = self._consumer.get_watermark_offsets(
                        TopicPartition(topic, partition), deadline.remaining_s()
                    )
            except RetryError:  # the partition's leader is changing
                if deadline.passed:
                    raise
                self._clock.sleep(_POLL_S)
            else:
                found = bounds_in(start, end)
                return self._list_bounds(topic, partition, deadline) if found is None else found

    def _list_bounds(
        self, topic: TopicName, partition: int, deadline: Deadline
    ) -> tuple[Offset, Offset]:
        """The bounds of a partition that seems empty, from requests that detect a missing one."""
        admin = KafkaAdmin(self._brokers, max(_POLL_S, deadline.remaining_s()), self._clock)
        starts = complete(admin.start_offsets((topic,)), (topic,))[topic]
        ends = complete(admin.end_offsets((topic,), self._isolation), (topic,))[topic]
        return starts[partition], ends[partition]

    def poll(
        self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
    ) -> tuple[KafkaRecord, ...]:
        """New records; may return early without any at the end of a partition."""
        self._check_reachable()
        first = self._consumer.poll(timeout_s)
        if first is None:
            return ()
        with translated(self._place("reading")):
            rest = self._consumer.consume(records_max - 1, 0) if records_max > 1 else []
        found = (self._take(message) for message in (first, *rest))
        return tuple(record for record in found if record is not None)

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The records of the assigned partitions up to these ends (exclusive)."""
        open_ends = {
            (topic, partition): ends.get(topic, {}).get(partition, position)
            for topic, positions in self._positions.items()
            for partition, position in positions.items()
        }
        self._drop_finished(open_ends)
        progress = self._progress_deadline()
        while open_ends:
            before = sum(self._positions[topic][part] for topic, part in open_ends)
            for record in self.poll(min(_POLL_S, progress.remaining_s())):
                end = open_ends.get((record.topic, record.partition))
                if end is not None and record.offset < end:
                    yield record
            if sum(self._positions[topic][part] for topic, part in open_ends) != before:
                progress = self._progress_deadline()
            self._drop_finished(open_ends)
            if open_ends and progress.passed:
                raise self._stalled(open_ends)

    def close(self) -> None:
        """Close the connection. A second call does nothing."""
        self._consumer.close()

    def _progress_deadline(self) -> Deadline:
        return Deadline.after(self._clock, self._timeout_s, "reading")

    def _stalled(self, open_ends: Mapping[tuple[TopicName, int], Offset]) -> MedusaError:
        """The error of a stalled read; requests metadata, as the driver retries missing topics."""
        for topic, partition in sorted(open_ends):
            with translated(self._place(f"topic {topic}")):
                topics = self._consumer.list_topics(topic, timeout=self._timeout_s).topics
            if topic not in topics or partition not in topics[topic].partitions:
                return NoSuchTopicError(
                    "the topic or the partition does not exist",
                    place=self._place(f"topic {topic}, partition {partition}"),
                )
        return NotNowError(
            f"nothing new came for {self._timeout_s:g} s, still to be read: {_words(open_ends)}",
            place=self._place("reading"),
            hint="an open transaction holds back what comes after it.",
        )

    def _drop_finished(self, open_ends: dict[tuple[TopicName, int], Offset]) -> None:
        done = [
            (topic, partition)
            for (topic, partition), end in open_ends.items()
            if self._positions[topic][partition] >= end
        ]
        if not done:
            return
        with translated(self._place("leaving partitions")):
            self._consumer.incremental_unassign([TopicPartition(*place) for place in done])
        for place in done:
            del open_ends[place]

    def _take(self, message: Message) -> KafkaRecord | None:
        error = message.error()
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if error is not None and error.code() != _EOF:
            ours = medusa_error(error, self._place(f"topic {topic}, partition {partition}"))
            if not isinstance(ours, RetryError | UnavailableError):
                raise ours
            self._down = True
            return None
        if topic is None or partition is None or offset is None:
            return None
        name = TopicName(topic)
        positions = self._positions.get(name, {})
        if partition not in positions:
            return None  # left over from an earlier assignment
        if error is not None:
            positions[partition] = max(positions[partition], Offset(offset))
            return None
        positions[partition] = Offset(offset + 1)
        return _record(name, partition, Offset(offset), message)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - as above
            self._down = True

    def _check_reachable(self) -> None:
        """Request metadata if all brokers were down: the driver does not report when one is up."""
        if self._down:
            topic = next(iter(self._positions), None)
            with translated(self._place("reading")):
                self._consumer.list_topics(topic, timeout=self._timeout_s)
            self._down = False

    def _place(self, detail: str) -> str:
        return f"Kafka {self._brokers}, {detail}"


def _record(topic: TopicName, partition: int, offset: Offset, message: Message) -> KafkaRecord:
    kind, timestamp = message.timestamp()
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return KafkaRecord(
        topic,
        partition,
        offset,
        Millis(-1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp),
        message.key(),
        message.value(),
        tuple((n, v.encode() if isinstance(v, str) else v) for n, v in pairs),
    )


def _words(places: Mapping[tuple[TopicName, int], Offset]) -> str:
    return ", ".join(
        f"topic {topic}, partition {partition} up to {end}"
        for (topic, partition), end in sorted(places.items())
    )
