"""Consumer group offsets for lag tools, copied from a reader that is not a member of the group.

They are not part of a transaction. librdkafka may wait for ever when it adds offsets to one while
the group's coordinator is unavailable, whatever timeout it is given (librdkafka#5456).
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
    """Asynchronous commits of group offsets: one request at a time, then the newest positions.

    A failed request is not repeated, since the next positions replace it. Thread-safe.

    Args:
        send: begins to set the group's offsets; its future ends when that has succeeded or failed.
    """

    def __init__(self, send: Callable[[GroupOffsets], "Future[object]"]) -> None:
        self._send = send
        self._lock = threading.Lock()
        self._waiting: GroupOffsets = _UNKNOWN
        self._sending = False

    def follow(self, positions: GroupOffsets) -> None:
        """Set the group's offsets to these positions, asynchronously."""
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
