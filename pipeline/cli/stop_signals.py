"""SIGTERM and SIGINT (Ctrl-C) as an event, for commands that run until they are stopped."""

import os
import signal
import sys
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class StopSignals:
    """Signal handlers of a block: SIGTERM and SIGINT set `event`; a second one interrupts.

    `by_hand` is true if the first one was SIGINT.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.by_hand = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._end)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.event.is_set():
            raise KeyboardInterrupt
        self.by_hand = number == signal.SIGINT
        # Not through a stream: this handler may interrupt a write into it.
        os.write(sys.stderr.fileno(), "stopping…\n".encode())
        self.event.set()
