"""Retention of dead letters: removes those that are old and not needed, in the background.

Kafka's retention is by age and by size, not by need. So the node that runs a lane removes its dead
letters, at most once a minute. It reads from Kafka alone, first the ends of the dead-letter topic,
then the last commit marker. So that marker covers all dead letters below the ends, and the offsets
that it needs only increase. The present time is the broker's timestamp of that marker; the node's
clock decides nothing.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from brokers.kafka_interface import TopicAdmin
from brokers.log_reader import LogReader
from pipeline.clock import Clock
from pipeline.dead_letters.trim import trim
from pipeline.errors import MedusaError
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


class Trimmer:
    """Schedule of retention: every `EVERY_S`, on a thread of its own. One caller."""

    def __init__(self, retention: Retention, clock: Clock) -> None:
        self._retention = retention
        self._clock = clock
        self._due_s = clock.monotonic_s()
        self._thread: threading.Thread | None = None
        self._failed = ""
        names = retention.names
        self._log = logging.LoggerAdapter(
            logging.getLogger(__name__), {"fragment": f"{names.network}.{names.fragment}"}
        )

    def trim_if_due(self) -> None:
        """Start the removal of old dead letters if it is due; never blocks, never raises."""
        now_s = self._clock.monotonic_s()
        if now_s < self._due_s or (self._thread is not None and self._thread.is_alive()):
            return
        self._due_s = now_s + EVERY_S
        self._thread = threading.Thread(target=self.trim, name="dead letters", daemon=True)
        self._thread.start()

    def trim(self) -> None:
        """Remove old dead letters; a failure is a warning, unless it equals the last one."""
        try:
            until = self._retention.apply()
        except MedusaError as error:
            if str(error) != self._failed:
                self._log.warning("old dead letters are not removed: %s", error)
            self._failed = str(error)
            return
        self._failed = ""
        if until:
            self._log.info("old dead letters are removed, below offsets %s", dict(until))
