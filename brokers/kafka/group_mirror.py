"""Consumer group offsets for lag tools, copied from a reader that is not a member of the group.

They are not part of a transaction. librdkafka may wait for ever when it adds offsets to one while
the group's coordinator is unavailable, whatever timeout it is given (librdkafka#5456).
"""

import logging
import threading
from typing import Final

from brokers.kafka_interface import GroupWriter
from brokers.records import Ends
from pipeline.clock import Clock
from pipeline.errors import MedusaError

ANSWER_S: Final = 60.0
"""A request without an answer has failed by then, whatever became of it."""
PAUSE_S: Final = 10.0
"""Pause before a request that failed is repeated."""
_NONE: Final[Ends] = {}
_log = logging.getLogger(__name__)


class GroupMirror:
    """Asynchronous commits of group offsets: one request at a time, then the newest positions.

    A request that failed is repeated after `PAUSE_S`, unless there are newer positions. Nothing is
    sent after `close`. Thread-safe.

    Args:
        writer: of the group; closed by `close`.
        clock: measures how long a request is in flight.
    """

    def __init__(self, writer: GroupWriter, clock: Clock) -> None:
        self._writer, self._clock = writer, clock
        self._lock = threading.RLock()
        self._waiting: Ends = _NONE
        self._sent: Ends = _NONE
        self._sent_s = 0.0
        self._pause_until_s = 0.0
        self._closed = False

    def follow(self, positions: Ends) -> None:
        """Set the group's offsets to these positions, asynchronously."""
        with self._lock:
            self._waiting, self._pause_until_s = positions, 0.0
            self.poll()

    def poll(self) -> None:
        """Take in an answer, and send what waits; to be called about once a second."""
        with self._lock:
            if self._closed:
                return
            self._writer.poll()
            now_s = self._clock.monotonic_s()
            if self._sent and now_s - self._sent_s < ANSWER_S:
                return
            if now_s < self._pause_until_s:
                return
            newest, self._waiting = self._waiting or self._sent, _NONE
            if newest:
                self._sent, self._sent_s = newest, now_s
                self._writer.commit(newest, self._answered)

    def close(self) -> None:
        """Close the connection; offsets that wait are not sent."""
        with self._lock:
            self._closed = True
            self._writer.close()

    def _answered(self, error: MedusaError | None) -> None:
        with self._lock:
            if error is not None:
                _log.debug("the offsets of a group were not set: %s", error)
                self._waiting = self._waiting or self._sent
                self._pause_until_s = self._clock.monotonic_s() + PAUSE_S
            self._sent = _NONE
