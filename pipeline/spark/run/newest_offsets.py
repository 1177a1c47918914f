"""What a lane that skips to the newest offsets has to know of the records that it passes over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brokers.kafka_interface import TopicAdmin, complete
from pipeline.clock import Clock
from pipeline.ids import Incarnation, Millis, Offset, StreamName
from pipeline.lanes.gaps import EventTimes, Passed, after_gap, largest_time, passed
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.boxes.shape import Shape
from pipeline.spark.batch.inspection import Inspector
from pipeline.spark.query.lowered import Lowered, Source


@dataclass(frozen=True, slots=True)
class NewestOffsets:
    """Reads ends and event times of the inputs of one lane.

    Args:
        admin: of their topics.
        earliest: the oldest offsets of all that the lane reads.
        inspector: reads ranges of its inputs.
        clock: wall time.
    """

    admin: TopicAdmin
    earliest: Callable[[], Positions]
    inspector: Callable[[], Inspector]
    clock: Clock

    def skipped_to(
        self, marker: CommitMarker, lowered: Lowered, shape: Shape, incarnation: Incarnation
    ) -> CommitMarker:
        """The marker at the newest offsets, with its gap.

        A transaction that is open now ends behind these offsets, so its records are read.

        Args:
            marker: the last one, with the present partitions.
            lowered: the fragment.
            shape: what it computes.
            incarnation: the one that begins.

        Raises:
            UnavailableError, NotNowError: Kafka does not answer.
        """
        over = passed(marker, self.earliest(), self._ends(lowered))
        times = self._times(over, lowered)
        return after_gap(marker, over, times, shape, (incarnation, self.clock.now_ms()))[0]

    def _ends(self, lowered: Lowered) -> Positions:
        """The committed ends of the topics that carry streams."""
        topics = sorted({source.data.topic for source in lowered.sources})
        ends = complete(self.admin.end_offsets(topics), topics)
        return {
            InputPartition(source.input, source.data.topic, partition): end
            for source in lowered.sources
            for partition, end in ends[source.data.topic].items()
        }

    def _times(self, over: Passed, lowered: Lowered) -> EventTimes:
        """The event times of what is passed over, read if it is not too much."""
        largest: Mapping[InputPartition, Millis] = {}
        bounded = over.bounded
        if over.read and over.begin != over.end:
            largest, unknown = self.inspector().newest(over.begin, over.end)
            bounded |= unknown
        bounds: dict[StreamName, Millis] = {}
        for source in lowered.sources:
            if source.input in bounded and (found := self._bound(source, over)) is not None:
                bounds[source.input] = found
        return EventTimes(largest, bounds)

    def _bound(self, source: Source, over: Passed) -> Millis | None:
        """Upper bound of the event times of an input's records before the newest offsets."""
        topic = source.data.topic
        end: Mapping[int, Offset] = {
            at.partition: offset
            for at, offset in over.end.items()
            if (at.input, at.topic) == (source.input, topic)
        }

        def has_one(time_ms: Millis) -> bool:
            first = self.admin.offsets_for_time(topic, time_ms)
            return any(first.get(partition, offset) < offset for partition, offset in end.items())

        found = largest_time(has_one)
        if source.input in over.removed:  # they were written before now
            found = max(self.clock.now_ms(), found or Millis(0))
        return None if found is None else Millis(found + (source.event_time.ahead_ms or 0))
