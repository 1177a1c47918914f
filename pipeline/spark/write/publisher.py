"""Publisher of a lane's boundary, outside of its transactions."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from brokers.kafka_interface import Isolation, NoSuchTopicError
from pipeline.errors import RetryError, UnavailableError
from pipeline.ids import Millis, Offset
from pipeline.markers import codec
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.signals import BoundaryRecord
from pipeline.names import boundaries_topic
from pipeline.spark.write.sink_context import SinkContext


@dataclass(frozen=True, slots=True)
class _Publication:
    """Key of a publication: a boundary is published again only if this changes.

    Args:
        boundary_ms: the promise.
        partitions: number of the output's partitions; a reader needs a boundary with all that it
            reads.
        into: Kafka's id of the boundary topic; a recreated topic lacks earlier records. Empty: not
            described yet.
        undelivered: number of failed deliveries so far.
    """

    boundary_ms: Millis
    partitions: int
    into: str
    undelivered: int


class Publisher:
    """Publishes the boundary of one lane's output. `publish_again` is thread-safe."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._topic = context.fragment.output.topic
        self._published: _Publication | None = None
        self._publishing = Lock()
        self._marker: CommitMarker | None = None
        self._written_to = context.output_partitions
        self.output_ends: Mapping[int, Offset] = {}
        """Acknowledged ends of the output, when the last boundary was published."""
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": str(context.lane.fragment)}
        )

    def publish(self, marker: CommitMarker) -> None:
        """Publish the promise of a committed marker, with the present ends of the output.

        If that fails now, it is published with the next batch, or by `publish_again`.
        """
        with self._publishing:
            self._marker = marker
            self._publish(marker)

    def publish_again(self) -> None:
        """Publish the boundary again if the last publication is outdated.

        To be called periodically: the output may get more partitions, and the boundary topic may be
        deleted and created again, while there is no batch.
        """
        if not self._publishing.acquire(blocking=False):
            return  # a batch is being published
        try:
            if self._marker is not None:
                self._publish(self._marker)
        finally:
            self._publishing.release()

    def partitions_to_write(self) -> int:
        """Number of output partitions that a batch is written to: never fewer than before.

        Raises:
            UnavailableError: it has grown, and Kafka does not answer.
        """
        partitions = self._partitions()
        if partitions > self._written_to:
            self._context.writer.refresh_partitions(self._topic)
        self._written_to = partitions
        return partitions

    def _publish(self, marker: CommitMarker) -> None:
        """Publish if the publication key has changed.

        The record contains at least the partitions that the lane has written to: their number only
        rises. Ends are read after the marker was committed: they cover the promise.
        """
        due, context = self._due(marker.boundary_ms), self._context
        if due is None or due == self._published:
            return
        if self._published is not None and due.undelivered > self._published.undelivered:
            self._log.warning("a boundary was not delivered: it is published again")
        writer = context.fragment.names.writer
        try:
            ends = context.admin.partition_ends(self._topic, due.partitions, Isolation.UNCOMMITTED)
            record = BoundaryRecord(context.output_id, writer, context.epoch, due.boundary_ms, ends)
            context.boundaries.send(
                boundaries_topic(self._topic),
                writer.encode(),
                codec.encode_boundary(record),
                timestamp_ms=marker.written_at_ms,
                partition=0,
            )
        except (RetryError, UnavailableError, NoSuchTopicError) as error:
            self._log.warning("the boundary could not be published yet: %s", error)
            return
        self.output_ends = ends
        self._published = due

    def _due(self, boundary_ms: Millis | None) -> _Publication | None:
        """The due publication; None while there is no promise, or no boundary topic."""
        topics = self._context.topics
        there = topics.last(boundaries_topic(self._topic))
        if boundary_ms is None or (there is None and topics.answered):
            return None
        into = "" if there is None else there.topic_id
        undelivered = self._context.boundaries.undelivered
        return _Publication(boundary_ms, self._partitions(), into, undelivered)

    def _partitions(self) -> int:
        """Number of partitions of the output: never fewer than were written to before."""
        there = self._context.topics.last(self._topic)
        return max(self._written_to, 0 if there is None else there.partitions)
