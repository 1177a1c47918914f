"""Partitions of which Kafka answers the ends, but no records: a lane reads the others meanwhile.

Such as those of a broker that answers from memory and whose disk hangs, or that Spark cannot reach.
"""

import logging
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from brokers.kafka_interface import (
    FETCH_WAIT_RANGE_MS,
    Isolation,
    KafkaCluster,
    Place,
)
from pipeline.clock import Clock, Deadline, steady_ms
from pipeline.errors import MedusaError
from pipeline.ids import Offset, SteadyMillis, TopicName
from pipeline.markers.positions import Positions
from pipeline.spark.run.lane_planner import LanePlanner

WITHIN_S: Final = 2.0
"""A partition that answers none of its next records, nor that there is none, in this time is
silent. Spark waits longer."""
AGAIN_MS: Final = 1_000
"""When those that were found are asked again: a new leader may be elected by then. Then after twice
the time, up to `EVERY_MS`."""
EVERY_MS: Final = 10_000
_READ_S: Final = 10.0
_POLL_S: Final = 0.1
_RECORDS: Final = 50

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SilentPartitions:
    """The silent partitions of one lane. Not thread-safe.

    Args:
        kafka: to read them.
        planner: plans nothing of them.
        clock: steady time.
        label: of the fragment, for the log.
    """

    kafka: KafkaCluster
    planner: LanePlanner
    clock: Clock
    label: str
    _since_ms: dict[Place, SteadyMillis] = field(default_factory=dict)
    _from: dict[Place, Offset] = field(default_factory=dict)
    _looked_ms: int = 0
    _pause_ms: int = AGAIN_MS

    def find(self, start: Positions, end: Positions) -> None:
        """After a batch could not be read: leave out those of its partitions that are silent.

        Args:
            start: where it began.
            end: where it was to end.
        """
        read = {at: start[at] for at, to in end.items() if to > start.get(at, to)}
        asked = {(at.topic, at.partition): offset for at, offset in read.items()}
        silent = self._silent(asked)
        now_ms = steady_ms(self.clock)
        self._since_ms |= {place: self._since_ms.get(place, now_ms) for place in silent}
        self._from |= {place: asked[place] for place in silent}
        self._pause_ms = AGAIN_MS
        self._set()

    def poll(self) -> None:
        """Ask those that are left out again, now and then; they are read on if they answer."""
        now_ms = steady_ms(self.clock)
        if not self._since_ms or now_ms - self._looked_ms < self._pause_ms:
            return
        self._pause_ms = min(2 * self._pause_ms, EVERY_MS)
        silent = self._silent(self._from)
        self._since_ms = {place: ms for place, ms in self._since_ms.items() if place in silent}
        self._from = {place: offset for place, offset in self._from.items() if place in silent}
        self._set()

    def _set(self) -> None:
        self._looked_ms = steady_ms(self.clock)
        self.planner.silent(dict(self._since_ms))
        where = ", ".join(f"{topic}/{partition}" for topic, partition in sorted(self._since_ms))
        if where:
            about = {"fragment": self.label}
            _log.warning("no records are answered, and not read for now: %s", where, extra=about)

    def _silent(self, asked: dict[Place, Offset]) -> frozenset[Place]:
        """Those that answer nothing from their offsets on; none if Kafka does not answer at all."""
        if not asked:
            return frozenset()
        places: dict[TopicName, dict[int, Offset]] = {}
        for (topic, partition), offset in asked.items():
            places.setdefault(topic, {})[partition] = offset
        deadline = Deadline.after(self.clock, WITHIN_S, "asking for records")
        unanswered = set(asked)
        open_reader = partial(
            self.kafka.reader,
            _READ_S,
            isolation=Isolation.UNCOMMITTED,
            fetch_wait_ms=FETCH_WAIT_RANGE_MS,
        )
        try:
            with open_reader() as reader:
                reader.assign(places)
                while unanswered and not deadline.passed:
                    reader.poll(min(_POLL_S, deadline.remaining_s()), _RECORDS)
                    at = reader.positions
                    unanswered = {
                        (topic, part)
                        for topic, part in unanswered
                        if at[topic][part] == asked[topic, part]
                    }
        except MedusaError as error:  # also of a partition that has answered, by an error
            _log.warning("silent partitions could not be found: %s", error)
            return frozenset()
        return frozenset(unanswered)
