"""Ctrl-C handling of a command with a Spark session: kills its Java process first.

PySpark makes Java ignore Ctrl-C. A Java process that still starts would notice the end of its
parent later, and print a trace; one that computes would block every cleanup call.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from brokers.children import child_processes


class Interrupts:
    """Within the block, Ctrl-C kills the processes that were started in it, and interrupts.

    These are the child processes that were started between the begin of the block and `opened`;
    until that is called, all that were started in the block. Errors after a Ctrl-C are caused by
    it, so they leave the block as `KeyboardInterrupt`.
    """

    def __init__(self, children: Callable[[], tuple[int, ...]] = child_processes) -> None:
        self._children = children
        self._others: frozenset[int] = frozenset()
        self._ours: frozenset[int] | None = None
        self._before: Any = None
        self.happened = False

    def __enter__(self) -> Self:
        self._others = frozenset(self._children())
        self._before = self._listen()
        return self

    def opened(self) -> None:
        """All processes are started; replaces the Ctrl-C handler that PySpark has installed."""
        self._ours = frozenset(self._children()) - self._others
        self._listen()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
        if self.happened and not isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt from error

    def _listen(self) -> Any:
        """Install the Ctrl-C handler; only possible in the main thread."""
        if threading.current_thread() is not threading.main_thread():
            return None
        return signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.happened = True
        ours = frozenset(self._children()) - self._others if self._ours is None else self._ours
        for child in ours:
            # By force: nothing has to be saved, and Java would first finish its computation.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise KeyboardInterrupt
