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


class EventRecorder:
    """Queue of entries, and the thread that writes them.

    Args:
        node: whose entries.
        open_writer: opens the connection, on the thread.
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
        """Write what is waiting, then end; returns whether that took no longer than `within_s`."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        writer: Writer | None = None
        reported = False
        while (batch := self._next()) is not None:
            try:
                writer = writer or self._open_writer()
                self._write(writer, batch)
            except MedusaError as error:
                level = logging.DEBUG if reported else logging.WARNING
                _log.log(level, "the event log is not written: %s", error)
                reported = True
                if not self._again(batch):
                    return
            else:
                reported = False

    def _write(self, writer: Writer, batch: list[LoggedEvent]) -> None:
        for event in batch:
            writer.send(event)
        writer.flush(FLUSH_S)

    def _again(self, batch: list[LoggedEvent]) -> bool:
        """Put a batch back, and wait; False: the node ends meanwhile."""
        with self._changed:
            self._waiting.extendleft(reversed(batch))
            while len(self._waiting) > ENTRIES_MAX:
                self._waiting.pop()
                self._lost += 1
            return not self._changed.wait_for(lambda: self._ended, RETRY_S)

    def _next(self) -> list[LoggedEvent] | None:
        """Wait for entries; None: there are none, and none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return None
            batch = list(self._waiting)
            self._waiting.clear()
            if self._lost:
                batch.append(entries_lost(self._lost, self._node, self._clock.now_ms()))
                self._lost = 0
            return batch
