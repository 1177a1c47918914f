"""Poll of the boundaries of derived inputs and of the activity records of their writers."""

import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from brokers.kafka_interface import BEGINNING, Describing, RecordReader, TopicAdmin
from brokers.records import Ends, KafkaRecord
from pipeline.agent.watched import Watched
from pipeline.boundaries.derived import PendingBoundary
from pipeline.boundaries.lane_time import Writer
from pipeline.boundaries.profile import DerivedInput
from pipeline.clock import Clock, steady_ms
from pipeline.errors import BrokenInvariantError, MedusaError, UnavailableError
from pipeline.ids import Epoch, SteadyMillis, TopicName
from pipeline.markers import codec
from pipeline.markers.signals import is_activity
from pipeline.names import boundaries_topic

POLL_S: Final = 0.5
DESCRIBE_S: Final = 1.0
"""Pause between two descriptions of the topics."""

_log = logging.getLogger(__name__)


class BoundaryNews(Protocol):
    """As `LaneNews` in `pipeline/spark/run/lane_news.py`."""

    def boundary_read(self, writer: Writer, epoch: Epoch, boundary: PendingBoundary) -> None:
        """Take in a boundary of a writer."""

    def activity_read(
        self, writer: Writer, epoch: Epoch, *, idle: bool, at_ms: SteadyMillis
    ) -> None:
        """Take in an activity report of a writer, read at steady time `at_ms`."""


class BoundaryPoll:
    """Reads the boundaries of derived inputs, from their beginning: the topics are compacted.

    The topics are described about once a second. When one was deleted or recreated, when the
    inputs of this node have changed, and after every error, all are read from the beginning again:
    a boundary that is read twice changes nothing. An activity record counts only at or beyond the
    end offset at which reading began: it describes the present.

    Args:
        admin: describes topics.
        open_reader: opens a reader of committed records.
        watched: the inputs to read.
        clock: measures the pause between two descriptions.
        news: receives what is read.
    """

    def __init__(
        self,
        admin: TopicAdmin,
        open_reader: Callable[[], RecordReader],
        watched: Watched,
        clock: Clock,
        news: BoundaryNews,
    ) -> None:
        self._admin = admin
        self._open_reader = open_reader
        self._watched = watched
        self._clock = clock
        self._news = news
        self._inputs: frozenset[DerivedInput] = frozenset()
        self._changes = 0
        self._reader: RecordReader | None = None
        self._ids: Mapping[TopicName, str] = {}
        self._present: Ends = {}
        self._describing: Describing | None = None
        self._answered_at_s = 0.0

    def read(self) -> float:
        """Send the boundaries that arrived; waits for some, so that no pause is needed."""
        changes, inputs = self._watched.derived_changes, self._watched.derived
        if (changes, inputs) != (self._changes, self._inputs):
            self._close()
            self._changes, self._inputs = changes, inputs
        if not inputs:
            return POLL_S
        try:
            self._follow_topics()
            records = self._reader.poll(POLL_S) if self._reader else ()
        except MedusaError:
            self._close()  # records fetched together with the error are read again
            raise
        for record in records:
            self._take(record)
        return 0.0 if self._reader else POLL_S

    def _follow_topics(self) -> None:
        """Read the existing topics; blocks on Kafka's answer only while no topic is read."""
        if self._describing is None:
            if self._reader and self._clock.monotonic_s() - self._answered_at_s < DESCRIBE_S:
                return
            topics = sorted({boundaries_topic(one.topic) for one in self._inputs})
            self._describing = self._admin.begin_describing(topics)
        if self._reader and not self._describing.done():
            return
        describing, self._describing = self._describing, None
        self._answered_at_s = self._clock.monotonic_s()
        try:
            found = describing.result()
        except UnavailableError:
            if self._reader:  # the reader reconnects by itself
                return
            raise
        ids = {topic: described.topic_id for topic, described in found.items()}
        if ids == self._ids:
            return
        self._close()
        if ids:
            self._present = self._admin.end_offsets(ids)
            self._reader = self._open_reader()
            self._reader.assign({topic: {0: BEGINNING} for topic in ids})
        self._ids = ids

    def _close(self) -> None:
        reader, self._reader, self._ids, self._describing = self._reader, None, {}, None
        if reader is not None:
            reader.close()

    def _is_present(self, record: KafkaRecord) -> bool:
        """Whether it was written after reading began; True if its topic had no end offset then."""
        return record.offset >= self._present.get(record.topic, {}).get(record.partition, 0)

    def _take(self, record: KafkaRecord) -> None:
        """Send a boundary or an activity; log and skip records that Medusa did not write."""
        if record.value is None:
            return
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            if is_activity(record.key):
                if not self._is_present(record):
                    return
                found = codec.decode_activity(record.value, place)
                writer, at_ms = (found.topic_id, found.writer), steady_ms(self._clock)
                self._news.activity_read(writer, found.epoch, idle=found.idle, at_ms=at_ms)
                return
            read = codec.decode_boundary(record.value, place)
        except BrokenInvariantError as error:
            _log.warning("a record that is no boundary is passed over: %s", error)
            return
        writer = read.topic_id, read.writer
        boundary = PendingBoundary(read.boundary_ms, read.positions)
        self._news.boundary_read(writer, read.epoch, boundary)
