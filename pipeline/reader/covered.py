"""The boundary of which all stable results were read. Pure."""

from collections.abc import Mapping

from brokers.records import KafkaRecord
from pipeline.boundaries.derived import PendingBoundary, WriterSeen, settled, with_boundary
from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis, Offset, TopicId
from pipeline.markers.codec import decode_boundary
from pipeline.markers.signals import is_activity


class Covered:
    """Boundaries of a topic, and the last one that is covered.

    One fragment writes a topic. When another one takes it over, its boundaries follow, and no more
    of the earlier one.

    Args:
        topic_id: Kafka's id of the topic; boundaries with another one are ignored.
    """

    def __init__(self, topic_id: TopicId) -> None:
        self._topic_id = topic_id
        self._writer: str | None = None
        self._seen = WriterSeen()

    def add(self, record: KafkaRecord) -> None:
        """Take in a record of the boundaries' topic; what Medusa did not write is ignored.

        Raises:
            NewerFormatError: a newer version of Medusa wrote it.
        """
        if record.value is None or is_activity(record.key):
            return
        place = f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
        try:
            found = decode_boundary(record.value, place)
        except BrokenInvariantError:
            return
        if found.topic_id != self._topic_id:
            return
        if found.writer != self._writer:
            self._writer, self._seen = found.writer, WriterSeen()
        boundary = PendingBoundary(found.boundary_ms, found.positions)
        self._seen = with_boundary(self._seen, found.epoch, boundary)

    def up_to(self, read: Mapping[int, Offset]) -> Millis | None:
        """The last boundary of which all positions were read; None: there is none.

        Args:
            read: the position in each partition of the topic.
        """
        self._seen = settled(self._seen, read)
        return self._seen.covered_ms
