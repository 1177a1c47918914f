"""Trimming by need: removes the records of a fragment's output that no fragment needs.

The node that runs the writer does it. It looks the readers up in the catalog, reads their last
commit markers, and removes what neither this look nor the one before needs. If the catalog or a
marker cannot be read, nothing is removed.
"""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from pipeline.catalog.records import TrimRecord
from pipeline.clock import Clock
from pipeline.ids import Millis, Offset, TopicId, TopicName
from pipeline.lanes.needed_by_readers import Need, Reader, needed, removable
from pipeline.markers.codec import decode_marker
from pipeline.names import FragmentNames
from pipeline.trimming.readers import ReadersInCatalog

EVERY_S: Final = 10.0
"""Interval of the looks: far longer than the catalog takes to show that a follower has begun."""


@dataclass(slots=True)
class ByNeed:
    """Trimming of one topic. One caller.

    Args:
        topic: the topic.
        topic_id: Kafka's id of it.
        is_wanted: whether it is kept by need, by the newest version.
        topics: Kafka's topics.
        log: reads commit markers.
        readers: who reads it.
        clock: of the time in the catalog.
    """

    topic: TopicName
    topic_id: TopicId
    is_wanted: Callable[[], bool]
    topics: TopicAdmin
    log: LogReader
    readers: ReadersInCatalog
    clock: Clock
    _before: Need | None = field(default=None, init=False)

    def apply(self) -> Mapping[int, Offset]:
        """Remove records that were not needed at the last look, and are not now.

        Returns:
            Partition → offset below which records were removed now.

        Raises:
            MedusaError: a server does not answer, or denies it. What was announced is removed by
                the next call, or by a reader that begins.
        """
        before, self._before = self._before, None
        if not self.is_wanted():
            return {}
        described = self.topics.describe((self.topic,)).get(self.topic)
        if described is None or described.topic_id != self.topic_id:
            return {}
        revision, readers = self.readers.find(self.topic, self.topic_id)
        need = needed(self.topic_id, described.partitions, self._with_markers(readers))
        starts = self.topics.start_offsets((self.topic,)).get(self.topic, {})
        until = removable(starts, need, before)
        if not self.readers.announce(self._record(until, need), revision):
            return {}
        self._before = need
        if until:
            self.topics.delete_records(self.topic, until)
        return until

    def _with_markers(self, readers: tuple[Reader, ...]) -> tuple[Reader, ...]:
        topics = [FragmentNames(one.fragment).markers for one in readers]
        with closing(self.log.last_records(topics)) as last:
            found = [
                None
                if record is None or record.value is None
                else decode_marker(record.value, f"topic {topic}")
                for topic, record in zip(topics, last, strict=True)
            ]
        return tuple(replace(one, marker=it) for one, it in zip(readers, found, strict=True))

    def _record(self, until: Mapping[int, Offset], need: Need) -> TrimRecord:
        fragment = self.readers.fragment
        return TrimRecord(
            network=fragment.network,
            fragment=fragment.fragment,
            topic=self.topic,
            topic_id=self.topic_id,
            before=tuple(sorted(until.items())),
            held=need.held,
            at_ms=Millis(self.clock.now_ms()),
        )
