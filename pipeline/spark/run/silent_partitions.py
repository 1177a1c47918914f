"""Partitions of which Kafka answers the ends, but no records: a lane reads the others meanwhile.

Such as those of a broker that answers from memory and whose disk hangs, or that Spark cannot reach.
"""

import logging
from dataclasses import dataclass, field
from typing import Final

from brokers.kafka_interface import (
    FETCH_WAIT_RANGE_MS,
    Isolation,
    KafkaCluster,
    Place,
    RecordReader,
)
from brokers.records import Ends
from pipeline.clock import Clock, Deadline, steady_ms
from pipeline.errors import MedusaError, RetryError, UnavailableError
from pipeline.ids import Offset, SteadyMillis
from pipeline.markers.positions import InputPartition, Positions, by_topic
from pipeline.spark.run.lane_planner import LanePlanner

WITHIN_S: Final = 2.0
"""A partition that answers none of its next records, nor that there is none, in this time is
silent. Spark waits longer."""
AGAIN_MS: Final = 1_000
"""When those that were found are asked again: a new leader may be elected by then. Then after twice
the time, up to `EVERY_MS`."""
EVERY_MS: Final = 10_000
_READ_S: Final = 1.0
_POLL_S: Final = 0.1
_RECORDS: Final = 50

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class SilentPartitions:
    """The silent partitions of one lane. Not thread-safe; to be closed.

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
    _from: dict[InputPartition, Offset] = field(default_factory=dict)
    _reader: RecordReader | None = None
    _asked_ms: int = 0
    _pause_ms: int = AGAIN_MS

    def find(self, start: Positions, end: Positions) -> None:
        """After a batch could not be read: leave out those of its partitions that are silent.

        If Kafka does not answer at all, only those are left out that were before.

        Args:
            start: where it began.
            end: where it was to end.
        """
        asked = {at: start[at] for at, to in end.items() if to > start.get(at, to)}
        deadline = Deadline.after(self.clock, WITHIN_S, "asking for records")
        try:
            self._ask(asked)
            while asked and not deadline.passed:
                asked = self._unanswered(asked, min(_POLL_S, deadline.remaining_s()))
        except MedusaError as error:  # also of a partition that has answered, by an error
            self._failed(error)
            return
        self._pause_ms, self._asked_ms = AGAIN_MS, steady_ms(self.clock)
        self._leave_out({**self._from, **asked})

    def poll(self) -> None:
        """Read on those that answer by now. Does not wait.

        Now and then all are asked again, by another reader: there may be a new leader, and the old
        one may hang. Until then the last request remains open, for one that answers slowly.
        """
        if not self._from:
            return
        now_ms = steady_ms(self.clock)
        try:
            if now_ms - self._asked_ms >= self._pause_ms:
                self._pause_ms, self._asked_ms = min(2 * self._pause_ms, EVERY_MS), now_ms
                self._ask(self._from)
            unanswered = self._unanswered(self._from, 0.0)
        except (RetryError, UnavailableError) as error:
            self._failed(error)
            return
        except MedusaError as error:  # it has answered: the query reports what is lost or forbidden
            self._failed(error)
            unanswered = {}
        if unanswered.keys() != self._from.keys():
            self._leave_out(unanswered)

    def close(self) -> None:
        """Close the reader; what is left out remains so."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _leave_out(self, silent: Positions) -> None:
        now_ms = steady_ms(self.clock)
        places = sorted({(at.topic, at.partition) for at in silent})
        self._from = dict(silent)
        self._since_ms = {place: self._since_ms.get(place, now_ms) for place in places}
        self.planner.silent(dict(self._since_ms))
        about = {"fragment": self.label}
        if not places:
            self.close()
            _log.info("all partitions answer with records, and are read on", extra=about)
            return
        where = ", ".join(f"{topic}/{partition}" for topic, partition in places)
        _log.warning("no records are answered, and not read for now: %s", where, extra=about)

    def _ask(self, asked: Positions) -> None:
        """Request the records at these positions, in connections of their own."""
        self.close()
        if not asked:
            return
        self._reader = self.kafka.reader(
            _READ_S, isolation=Isolation.UNCOMMITTED, fetch_wait_ms=FETCH_WAIT_RANGE_MS
        )
        self._assign(asked)

    def _unanswered(self, asked: Positions, within_s: float) -> dict[InputPartition, Offset]:
        """Those without an answer; of the others nothing more is read."""
        if self._reader is None:
            return dict(asked)
        self._reader.poll(within_s, _RECORDS)
        here = self._reader.positions
        left = {at: offset for at, offset in asked.items() if self._is_at(here, at, offset)}
        if left.keys() != asked.keys():
            self._assign(left)
        return left

    def _assign(self, asked: Positions) -> None:
        if self._reader is not None:
            self._reader.assign(by_topic(asked, {at.topic for at in asked}))

    @staticmethod
    def _is_at(here: Ends, at: InputPartition, offset: Offset) -> bool:
        """Whether a reader has read nothing from this offset on."""
        return here.get(at.topic, {}).get(at.partition, offset) <= offset

    def _failed(self, error: MedusaError) -> None:
        self.close()
        about = {"fragment": self.label}
        _log.warning("partitions could not be asked for records: %s", error, extra=about)
