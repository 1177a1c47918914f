"""Ctrl-C while a command computes in Spark: ends its Java process first, then everything else.

Java is told by PySpark to ignore Ctrl-C. One that still starts when we end would find out on its
own, later, and print a trace; one that computes would let every call that tidies up wait for it.
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
    """While the block runs, Ctrl-C ends the processes that were started for it, and interrupts.

    These are the children that came to be between the begin of the block and `opened`; until that
    is called, all that came to be in the block. What fails after a Ctrl-C fails because of it, so
    it leaves the block as `KeyboardInterrupt`.
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
        """All has been started; PySpark listens to Ctrl-C itself by now, which ends here."""
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
        """Take Ctrl-C over; only the main thread hears it."""
        if threading.current_thread() is not threading.main_thread():
            return None
        return signal.signal(signal.SIGINT, self._interrupt)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.happened = True
        ours = frozenset(self._children()) - self._others if self._ours is None else self._ours
        for child in ours:
            # By force: nothing of it is kept, and Java would first wait for what it computes.
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        raise KeyboardInterrupt
