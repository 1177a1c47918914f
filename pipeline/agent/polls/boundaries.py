"""Reads the boundaries of derived inputs, and what their writers say of their activity."""

import logging
from collections.abc import Callable, Mapping
from typing import Final

from brokers.kafka_interface import BEGINNING, Describing, RecordReader, TopicAdmin
from brokers.records import Ends, KafkaRecord
from pipeline.agent.events import ActivityRead, BoundaryRead
from pipeline.agent.polls.poll import Tell
from pipeline.agent.watched import Watched
from pipeline.boundaries.profile import DerivedInput
from pipeline.clock import Clock
from pipeline.errors import BrokenInvariantError, MedusaError, UnavailableError
from pipeline.ids import TopicName
from pipeline.markers import codec
from pipeline.markers.signals import is_activity
from pipeline.names import boundaries_topic

POLL_S: Final = 0.5
DESCRIBE_S: Final = 1.0
"""Between two descriptions of the topics."""

_log = logging.getLogger(__name__)


class BoundaryPoll:
    """Reads the boundaries of derived inputs, from their beginning: the topics are compacted.

    Their topics are described about once a second. When one was deleted or created again, when the
    inputs of this node have changed, and after every error, all are read from the beginning again:
    a boundary that is read twice changes nothing. What a writer has said of its activity counts
    only behind the end that a topic had when reading it began: it says something of the present.

    Args:
        admin: describes topics.
        open_reader: opens a reader of committed records.
        watched: which inputs there are.
        clock: for the pause between two descriptions.
        tell: receives `BoundaryRead` and `ActivityRead`.
    """

    def __init__(
        self,
        admin: TopicAdmin,
        open_reader: Callable[[], RecordReader],
        watched: Watched,
        clock: Clock,
        tell: Tell,
    ) -> None:
        self._admin = admin
        self._open_reader = open_reader
        self._watched = watched
        self._clock = clock
        self._tell = tell
        self._inputs: frozenset[DerivedInput] = frozenset()
        self._reader: RecordReader | None = None
        self._ids: Mapping[TopicName, str] = {}
        self._present: Ends = {}
        self._asked: Describing | None = None
        self._answered_at_s = 0.0

    def look(self) -> float:
        """Tell the boundaries that came; waits for some, so that no pause is needed."""
        inputs = self._watched.derived
        if inputs != self._inputs:
            self._close()
            self._inputs = inputs
        if not inputs:
            return POLL_S
        try:
            self._follow_topics()
            records = self._reader.poll(POLL_S) if self._reader else ()
        except MedusaError:
            self._close()  # what was fetched together with the error is read again
            raise
        for record in records:
            self._take(record)
        return 0.0 if self._reader else POLL_S

    def _follow_topics(self) -> None:
        """Read the topics that there are; waits for Kafka's answer only as long as none is read."""
        if self._asked is None:
            if self._reader and self._clock.monotonic_s() - self._answered_at_s < DESCRIBE_S:
                return
            topics = sorted({boundaries_topic(one.topic) for one in self._inputs})
            self._asked = self._admin.begin_describing(topics)
        if self._reader and not self._asked.done():
            return
        asked, self._asked = self._asked, None
        self._answered_at_s = self._clock.monotonic_s()
        try:
            found = asked.result()
        except UnavailableError:
            if self._reader:  # it notices, too, and goes on when Kafka is back
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
        reader, self._reader, self._ids, self._asked = self._reader, None, {}, None
        if reader is not None:
            reader.close()

    def _is_present(self, record: KafkaRecord) -> bool:
        """Whether it was written since reading began; where nobody could say, all of it counts."""
        return record.offset >= self._present.get(record.topic, {}).get(record.partition, 0)

    def _take(self, record: KafkaRecord) -> None:
        """Tell a boundary; what is none, since somebody else wrote it, is passed over."""
        if record.value is None:
            return
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            if is_activity(record.key):
                if not self._is_present(record):
                    return
                said = codec.decode_activity(record.value, place)
                self._tell(ActivityRead((said.topic_id, said.writer), said.epoch, said.idle))
                return
            read = codec.decode_boundary(record.value, place)
        except BrokenInvariantError as error:
            _log.warning("a record that is no boundary is passed over: %s", error)
            return
        writer = read.topic_id, read.writer
        self._tell(BoundaryRead(writer, read.epoch, read.boundary_ms, read.positions))
