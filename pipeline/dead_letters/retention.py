"""Retention of dead letters: removes those that are old and not needed, in the background.

Kafka's retention is by age and by size, not by need. So the node that runs a lane removes its dead
letters, at most once a minute. It reads from Kafka alone, first the ends of the dead-letter topic,
then the last commit marker. So that marker covers all dead letters below the ends, and the offsets
that it needs only increase. The present time is the broker's timestamp of that marker; the node's
clock decides nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from pipeline.dead_letters.trim import trim
from pipeline.ids import Millis, Offset
from pipeline.lanes.needed_letters import kept_from
from pipeline.markers.codec import decode_marker
from pipeline.names import FragmentNames

EVERY_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention of one fragment's dead letters.

    Args:
        names: the fragment's.
        topics: Kafka's topics.
        log: reads the last commit marker.
        kept_ms: returns the retention of dead letters that no rebuild needs; None: it is not known
            yet, so none is removed.
    """

    names: FragmentNames
    topics: TopicAdmin
    log: LogReader
    kept_ms: Callable[[], int | None]

    def apply(self) -> Mapping[int, Offset]:
        """Remove dead letters that are old and not needed.

        Returns:
            Partition → offset below which dead letters were removed now.

        Raises:
            MedusaError: Kafka does not answer, or denies it; nothing is half done.
        """
        topic, markers, kept_ms = self.names.dead_letters, self.names.markers, self.kept_ms()
        if kept_ms is None:
            return {}
        starts = self.topics.start_offsets((topic,)).get(topic, {})
        ends = self.topics.end_offsets((topic,)).get(topic, {})
        if all(ends.get(partition, start) <= start for partition, start in starts.items()):
            return {}
        described = self.topics.describe((topic,)).get(topic)
        if described is None or not self.topics.await_decided(markers):
            return {}
        record = self.log.last(markers)
        if record is None or record.value is None:
            return {}
        marker = decode_marker(record.value, f"topic {markers}")
        young = self.topics.offsets_for_time(topic, Millis(max(0, record.timestamp_ms - kept_ms)))
        until = trim(starts, kept_from(marker, described.topic_id, ends), young)
        self.topics.delete_records(topic, until)
        return until
