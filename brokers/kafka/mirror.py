"""Offsets of a consumer group that follow a reader which is no member of it, for lag tools.

They are no part of a transaction. librdkafka may wait without end when it puts offsets into one
while the group's coordinator is away, whatever time limit it is given (librdkafka#5456).
"""

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Final

from pipeline.ids import Offset, TopicName

GroupOffsets = Mapping[TopicName, Mapping[int, Offset]]
_UNKNOWN: Final[GroupOffsets] = {}
_log = logging.getLogger(__name__)


class GroupMirror:
    """Sends positions without waiting: one request at a time, and after it the newest positions.

    What cannot be sent is dropped, since the next positions replace it. Safe from any thread.

    Args:
        send: begins to set the group's offsets; its future ends when that is done, or has failed.
    """

    def __init__(self, send: Callable[[GroupOffsets], "Future[object]"]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._waiting: GroupOffsets = _UNKNOWN
        self._sending = False

    def follow(self, positions: GroupOffsets) -> None:
        """Let the group's offsets become these positions soon."""
        with self._lock:
            self._waiting = positions
            if self._sending or not positions:
                return
            self._sending = True
        self._send_newest()

    def _send_newest(self) -> None:
        with self._lock:
            newest, self._waiting = self._waiting, _UNKNOWN
        self._send(newest).add_done_callback(self._answered)

    def _answered(self, answer: "Future[object]") -> None:
        error = answer.exception()
        if error is not None:
            _log.debug("the offsets of a group were not set: %s", error)
        with self._lock:
            self._sending = error is None and bool(self._waiting)
            again = self._sending
        if again:
            self._send_newest()
