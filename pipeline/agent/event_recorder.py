"""Writes the entries of a node into the event log, on a thread of its own.

Nothing waits for it: entries stay in a bounded queue while Kafka does not answer, and those that do
not fit are counted. A batch of entries whose delivery is not certain is sent again, so an entry may
be there twice; readers leave out repeated ones.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from pipeline.agent.logged import entries_lost
from pipeline.clock import Clock
from pipeline.errors import MedusaError
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import NodeId

ENTRIES_MAX: Final = 1_000
FLUSH_S: Final = 30.0
RETRY_S: Final = 5.0

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """As `EventWriter` in `pipeline/event_log/log.py`."""

    def send(self, event: LoggedEvent) -> None:
        """Send an entry; returns before it is delivered."""

    def flush(self, within_s: float) -> None:
        """Wait until every entry is delivered; raises if some were not."""

    def close(self) -> None:
        """Close the connection."""


class EventRecorder:
    """Queue of entries, and the thread that writes them.

    Args:
        node: whose entries.
        open_writer: opens a connection, on the thread; again after each failure.
        clock: of the entry about lost ones.
    """

    def __init__(self, node: NodeId, open_writer: Callable[[], Writer], clock: Clock) -> None:
        self._node = node
        self._open_writer = open_writer
        self._clock = clock
        self._waiting: deque[LoggedEvent] = deque()
        self._lost = 0
        self._changed = threading.Condition()
        self._ended = False
        self._reported = False
        self._thread = threading.Thread(target=self._work, name="event log", daemon=True)
        self._thread.start()

    def put(self, event: LoggedEvent) -> None:
        """Queue an entry; never waits."""
        with self._changed:
            if len(self._waiting) < ENTRIES_MAX:
                self._waiting.append(event)
            else:
                self._lost += 1
            self._changed.notify()

    def end(self, within_s: float) -> bool:
        """Try once more to write what is waiting, then end; returns whether it ended in time."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        writer: Writer | None = None
        while (found := self._next()) is not None:
            batch, is_last_try = found
            try:
                writer = writer or self._open_writer()
                self._write(writer, batch)
            except MedusaError as error:
                _close(writer)
                writer = None
                self._report(error)
                if is_last_try:
                    _log.warning("%d entries of the event log are not written", len(batch))
                    return
                self._again(batch)
            except Exception:  # noqa: BLE001 - the thread's top: the next entries must still come
                _close(writer)
                writer = None
                _log.exception("entries of the event log are dropped")
                with self._changed:
                    self._lost += len(batch)
            else:
                self._reported = False
        _close(writer)

    def _write(self, writer: Writer, batch: list[LoggedEvent]) -> None:
        with self._changed:
            lost = self._lost
        for event in batch:
            writer.send(event)
        if lost:
            writer.send(entries_lost(lost, self._node, self._clock.now_ms()))
        writer.flush(FLUSH_S)
        with self._changed:
            self._lost -= lost

    def _report(self, error: MedusaError) -> None:
        level = logging.DEBUG if self._reported else logging.WARNING
        _log.log(level, "the event log is not written: %s", error)
        self._reported = True

    def _again(self, batch: list[LoggedEvent]) -> None:
        """Put a batch back, and wait a while, or until the node ends."""
        with self._changed:
            self._waiting.extendleft(reversed(batch))
            while len(self._waiting) > ENTRIES_MAX:
                self._waiting.pop()
                self._lost += 1
            self._changed.wait_for(lambda: self._ended, RETRY_S)

    def _next(self) -> tuple[list[LoggedEvent], bool] | None:
        """Wait for entries; with whether the node ends. None: it ends, and there are none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return None
            batch = list(self._waiting)
            self._waiting.clear()
            return batch, self._ended


def _close(writer: Writer | None) -> None:
    if writer is not None:
        writer.close()
