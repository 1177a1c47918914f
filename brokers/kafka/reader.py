"""Read records of topics from given offsets: no group, no commits, committed records by default.

Offsets do not count records: transaction markers, aborted records and compaction leave gaps. So a
reader knows that it has passed an offset by a record beyond it, or by being told that the end of
the partition lies beyond it; it never waits for a record at exactly that offset.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    TopicPartition,
)

from brokers.kafka.admin import Isolation, KafkaAdmin
from brokers.kafka.answers import bounds_in, complete
from brokers.kafka.config import client_config
from brokers.kafka.errors import NoSuchTopicError, NotNowError, medusa_error, translated
from brokers.kafka.servers import Brokers
from brokers.records import Ends, KafkaRecord
from pipeline.clock import Clock, Deadline, SystemClock
from pipeline.errors import MedusaError, RetryError, UnavailableError
from pipeline.ids import Millis, Offset, TopicName
from pipeline.names import READER_GROUP

Ranges = Mapping[TopicName, Mapping[int, tuple[Offset, Offset]]]
"""Per partition the first offset to read and the one to stop before."""

FETCH_WAIT_MS: Final = 100
"""How long a broker holds a fetch that finds nothing; a new record ends the wait at once."""
FETCH_WAIT_RANGE_MS: Final = 2
"""The same for a range with an end: only a fetch that finds nothing tells that nothing is left."""
POLL_RECORDS_MAX: Final = 2_000
BEGINNING: Final = Offset(OFFSET_BEGINNING)
"""Assigned instead of an offset: the oldest record that the partition holds."""
_POLL_S: Final = 0.1
_FIRST_STEP: Final = 64
_STEP_GROWTH: Final = 8
_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the driver's own name of the code


class TopicReader:
    """One consumer of assigned partitions. Not thread-safe; close it, or use it in `with`.

    Args:
        brokers: where to read.
        timeout_s: limit for finding out whether an unreachable broker is back, and for a range
            that brings nothing new.
        isolation: whether records of open and aborted transactions are seen too.
        fetch_wait_ms: see `FETCH_WAIT_MS`.
    """

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
        """Per assigned partition the next offset to read; gaps at the end are passed over."""
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
        """The oldest offset of a partition, and its end as this reader's isolation sees it.

        Raises:
            UnavailableError: the brokers do not answer.
            NoSuchTopicError: the topic or the partition does not exist.
            NotNowError: a bound was not told, or a partition of the topic has no leader now.
        """
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
                return self._bounds_told(topic, partition, deadline) if found is None else found

    def _bounds_told(
        self, topic: TopicName, partition: int, deadline: Deadline
    ) -> tuple[Offset, Offset]:
        """The bounds of a partition that seems to be empty, asked so that a missing one is seen."""
        admin = KafkaAdmin(self._brokers, max(_POLL_S, deadline.remaining_s()), self._clock)
        starts = complete(admin.start_offsets((topic,)), (topic,))[topic]
        ends = complete(admin.end_offsets((topic,), self._isolation), (topic,))[topic]
        return starts[partition], ends[partition]

    def poll(
        self, timeout_s: float, records_max: int = POLL_RECORDS_MAX
    ) -> tuple[KafkaRecord, ...]:
        """What has come; waits at most `timeout_s` for the first record, then takes what is there.

        Nothing may come back early when a partition's end was reached.

        Raises:
            UnavailableError: the brokers are down, and still are after `timeout_s` of the reader.
            NoSuchTopicError: an assigned topic or partition does not exist.
            OffsetGoneError: the offset to read is not in the partition any more.
        """
        self._check_reachable()
        first = self._consumer.poll(timeout_s)
        if first is None:
            return ()
        with translated(self._place("reading")):
            rest = self._consumer.consume(records_max - 1, 0) if records_max > 1 else []
        found = (self._take(message) for message in (first, *rest))
        return tuple(record for record in found if record is not None)

    def read_to(self, ends: Ends) -> Iterator[KafkaRecord]:
        """The records of the assigned partitions up to these ends (exclusive), then stop.

        Assigned partitions without an end are not read.

        Raises:
            NotNowError: nothing new came for `timeout_s`, although the ends were not reached.
        """
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
        """Drop the connection. Closing twice does nothing."""
        self._consumer.close()

    def _progress_deadline(self) -> Deadline:
        return Deadline.after(self._clock, self._timeout_s, "reading")

    def _stalled(self, open_ends: Mapping[tuple[TopicName, int], Offset]) -> MedusaError:
        """Why nothing came: ask, since the driver keeps trying when a partition does not exist."""
        for topic, partition in sorted(open_ends):
            with translated(self._place(f"topic {topic}")):
                there = self._consumer.list_topics(topic, timeout=self._timeout_s).topics
            if topic not in there or partition not in there[topic].partitions:
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
        """Ask a broker for metadata if all were down: nothing tells us that one is back."""
        if self._down:
            topic = next(iter(self._positions), None)
            with translated(self._place("reading")):
                self._consumer.list_topics(topic, timeout=self._timeout_s)
            self._down = False

    def _place(self, detail: str) -> str:
        return f"Kafka {self._brokers}, {detail}"


def read_range(
    brokers: Brokers,
    ranges: Ranges,
    timeout_s: float,
    *,
    isolation: Isolation = Isolation.COMMITTED,
) -> Iterator[KafkaRecord]:
    """The records within ranges of offsets; in order within a partition, partitions mixed.

    Raises:
        UnavailableError, NoSuchTopicError, OffsetGoneError: see `TopicReader.poll`.
        RetryError: nothing new came for `timeout_s`.
    """
    starts: dict[TopicName, dict[int, Offset]] = {}
    ends: dict[TopicName, dict[int, Offset]] = {}
    for topic, partitions in ranges.items():
        for partition, (start, end) in partitions.items():
            if start < end:
                starts.setdefault(topic, {})[partition] = start
                ends.setdefault(topic, {})[partition] = end
    if not starts:
        return
    with TopicReader(
        brokers, timeout_s, isolation=isolation, fetch_wait_ms=FETCH_WAIT_RANGE_MS
    ) as reader:
        reader.assign(starts)
        yield from reader.read_to(ends)


def read_last(
    brokers: Brokers, topic: TopicName, partition: int, count: int, timeout_s: float
) -> tuple[KafkaRecord, ...]:
    """The last committed records of a partition, oldest first; fewer when it holds fewer.

    Reads backwards in growing steps, since the last offsets may hold no record at all.
    """
    found: deque[KafkaRecord] = deque()
    with TopicReader(brokers, timeout_s, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
        start, upper = reader.bounds(topic, partition)
        step = _FIRST_STEP
        while len(found) < count and upper > start:
            lower = Offset(max(start, upper - step))
            reader.assign({topic: {partition: lower}})
            part = deque(reader.read_to({topic: {partition: upper}}), count - len(found))
            found.extendleft(reversed(part))
            upper, step = lower, step * _STEP_GROWTH
    return tuple(found)


class LogReader:
    """Single records of topics, each looked up with a consumer of its own."""

    def __init__(self, brokers: Brokers, timeout_s: float) -> None:
        self._brokers = brokers
        self._timeout_s = timeout_s

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last committed record of partition 0; None if there is none.

        Raises:
            UnavailableError: the brokers do not answer.
            NoSuchTopicError: the topic does not exist.
        """
        found = read_last(self._brokers, topic, 0, 1, self._timeout_s)
        return found[-1] if found else None

    def oldest_ms(self, topic: TopicName, partitions: int) -> Millis | None:
        """The least timestamp among the first records of its partitions; None: it is empty.

        Raises:
            UnavailableError: the brokers do not answer.
            NoSuchTopicError: the topic does not exist.
        """
        found: list[Millis] = []
        with TopicReader(
            self._brokers, self._timeout_s, fetch_wait_ms=FETCH_WAIT_RANGE_MS
        ) as reader:
            for partition in range(partitions):
                start, end = reader.bounds(topic, partition)
                reader.assign({topic: {partition: start}})
                first = next(reader.read_to({topic: {partition: end}}), None)
                if first is not None:
                    found.append(first.timestamp_ms)
        return min(found, default=None)


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
