"""Batch sizer: samples the records to be read, so that no batch exceeds memory."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from brokers.kafka_interface import (
    FETCH_WAIT_RANGE_MS,
    Isolation,
    KafkaCluster,
    OffsetGoneError,
    RecordReader,
    TopicAdmin,
)
from brokers.records import Ends
from pipeline.boundaries.next_batch import Limits
from pipeline.clock import Clock, Deadline
from pipeline.ids import TopicName
from pipeline.lanes.batch_size import (
    JOINED_PER_BATCH,
    RECORDS_PER_BATCH,
    records_at_once,
    sample_offsets,
)
from pipeline.markers.positions import Positions, by_topic
from pipeline.network.boxes.traits import Keeps
from pipeline.planner.plan import Fragment
from pipeline.spark.run.reachable_ends import ReachableEnds
from pipeline.spark.run.record_samples import record_bytes

READ_TIMEOUT_S = 10.0
PLACE_WITHIN_S = 0.5
"""Timeout of a sample; one without a record, as at the end of an open transaction, is skipped."""
PLACE_BYTES = 4_000_000
PLACE_RECORDS = 500
_POLL_RECORDS = 50
_POLL_S = 0.1


@dataclass(frozen=True, slots=True)
class BatchSizer:
    """Computes batch size limits from sampled record sizes."""

    kafka: KafkaCluster
    admin: TopicAdmin
    clock: Clock

    def records_at_once(self, start: Positions) -> int | None:
        """Maximum number of records in a batch from some positions on; None: none was sampled.

        Partitions that cannot be reached are not sampled.

        Raises:
            NoSuchTopicError: a topic does not exist.
            UnavailableError, RetryError: Kafka does not answer.
        """
        topics = {at.topic for at in start}
        reachable = ReachableEnds(self.kafka, self.admin, self.clock)
        ends, _ = reachable.read(topics, Isolation.COMMITTED)
        found = list(sample_offsets(start, ends))
        if not found:
            return None
        with self.kafka.reader(READ_TIMEOUT_S, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
            sizes = [
                size for place in found for size in self._sizes(reader, by_topic(place, topics))
            ]
        return records_at_once(sizes) if sizes else None

    def _sizes(self, reader: RecordReader, place: Ends) -> Iterator[float]:
        """The mean size of the sampled records of each partition."""
        deadline = Deadline.after(self.clock, PLACE_WITHIN_S, "looking ahead")
        unseen = {(topic, partition) for topic, there in place.items() for partition in there}
        found: dict[tuple[TopicName, int], list[int]] = {}
        total = number = 0
        try:
            reader.assign(place)
            while not deadline.passed and (unseen or total < PLACE_BYTES):
                records = reader.poll(min(_POLL_S, deadline.remaining_s()), _POLL_RECORDS)
                for record in records:
                    size, at = record_bytes(record), (record.topic, record.partition)
                    found.setdefault(at, []).append(size)
                    unseen.discard(at)
                    total, number = total + size, number + 1
                if not unseen and (not records or number >= PLACE_RECORDS):
                    break
        except OffsetGoneError:  # the query fails on it as well, with a full report
            return
        yield from (sum(sizes) / len(sizes) for sizes in found.values())


class BatchLimit:
    """Batch size limit of a fragment; a sample is remembered for the latest positions.

    Args:
        sizer: samples the records.
        fragment: which reads them.
        offered: topics that are read from a position on that is not known at first: at offset 0
            nothing is sampled, since what is there may be gone.
    """

    def __init__(
        self,
        sizer: BatchSizer,
        fragment: Fragment,
        offered: AbstractSet[TopicName] = frozenset(),
    ) -> None:
        self._sizer = sizer
        self._offered = offered
        rows = fragment.traits.keeps is Keeps.ROWS
        self._most = JOINED_PER_BATCH if rows else RECORDS_PER_BATCH
        self._cached: tuple[Positions, int] | None = None

    def limits(self, start: Positions, pace_ms: int) -> Limits:
        """The limits of batches from some positions on; raises as `at` does."""
        limits = Limits(self.at(start), pace_ms)
        return limits.before_samples() if self._cached is None else limits

    def at(self, start: Positions) -> int:
        """The limit from some positions on; raises as `BatchSizer.records_at_once` does."""
        sampled = self.sample(start)
        return self._most if sampled is None else sampled

    def sample(self, start: Positions) -> int | None:
        """The same; None: no record was sampled, since there is none yet, or none was answered."""
        start = {
            at: offset for at, offset in start.items() if offset or at.topic not in self._offered
        }
        if self._cached is None or self._cached[0] != start:
            sampled = self._sizer.records_at_once(start)
            if sampled is None:
                return None
            self._cached = start, min(sampled, self._most)
        return self._cached[1]
