"""Publishes the boundary that a lane promises, beside its transactions."""

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
    """What decides whether the boundary has to be published: nothing else is told by it.

    Args:
        boundary_ms: what is promised.
        partitions: of the output; a reader waits for a boundary that names all that it reads.
        into: Kafka's id of the topic of boundaries; another one does not hold what the last held.
            Empty: not described yet.
        undelivered: deliveries that have failed so far.
    """

    boundary_ms: Millis
    partitions: int
    into: str
    undelivered: int


class Publisher:
    """The boundary of one lane's output. `publish_again` is safe from any thread."""

    def __init__(self, context: SinkContext) -> None:
        self._context = context
        self._topic = context.fragment.output.topic
        self._published: _Publication | None = None
        self._publishing = Lock()
        self._marker: CommitMarker | None = None
        self._written_to = context.output_partitions
        self.output_ends: Mapping[int, Offset] = {}
        """Where the output ended at least: when the last boundary was published."""
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": str(context.lane.fragment)}
        )

    def publish(self, marker: CommitMarker) -> None:
        """Publish what a committed marker promises, with where the output lies by now.

        What cannot be published now is published with the next batch, or by `publish_again`.
        """
        with self._publishing:
            self._marker = marker
            self._publish(marker)

    def publish_again(self) -> None:
        """Publish the boundary if what was published does not do any more.

        Call it now and then: the output may get more partitions, and the topic of boundaries may be
        deleted and created again, while there is no batch.
        """
        if not self._publishing.acquire(blocking=False):
            return  # a batch publishes just now
        try:
            if self._marker is not None:
                self._publish(self._marker)
        finally:
            self._publishing.release()

    def partitions_to_write(self) -> int:
        """How many partitions of the output a batch is written to: never fewer than before.

        Raises:
            UnavailableError: it has grown, and Kafka does not answer.
        """
        partitions = self._partitions()
        if partitions > self._written_to:
            self._context.writer.refresh_partitions(self._topic)
        self._written_to = partitions
        return partitions

    def _publish(self, marker: CommitMarker) -> None:
        """Publish if something has changed.

        The partitions that are named are at least those that the lane has written to: their number
        only rises. Ends are asked for after the marker was committed: they cover what it promises.
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
        """What has to be published; None while nothing is promised, or there is no place for it."""
        topics = self._context.topics
        there = topics.last(boundaries_topic(self._topic))
        if boundary_ms is None or (there is None and topics.answered):
            return None
        into = "" if there is None else there.topic_id
        undelivered = self._context.boundaries.undelivered
        return _Publication(boundary_ms, self._partitions(), into, undelivered)

    def _partitions(self) -> int:
        """How many partitions the output has: never fewer than were written to before."""
        there = self._context.topics.last(self._topic)
        return max(self._written_to, 0 if there is None else there.partitions)
