"""Cooperative threads of lanes: one runs at a time, under explicit scheduling.

So a history is deterministic, and a lane can be suspended, or killed, at every pause.
"""

import threading
from collections.abc import Callable
from math import ceil
from typing import Any


class CrashedError(BaseException):
    """The process of this thread is killed; its cleanup code has no effect."""


class Turn:
    """A thread that runs from one pause to the next. Replaces `threading.Thread`."""

    current: "Turn | None" = None

    def __init__(
        self,
        target: Callable[..., None],
        args: tuple[Any, ...] = (),
        name: str = "",
        *,
        daemon: bool = True,
    ) -> None:
        del daemon
        self.name = name
        self.dead = False
        self.done = False
        self.failed: BaseException | None = None
        self.facts: dict[str, Any] = {}
        self.meanwhile: Callable[[], None] = lambda: None
        """What other threads of the same lane do while this one waits."""
        self._target, self._args = target, args
        self._mine, self._theirs = threading.Lock(), threading.Lock()
        self._mine.acquire()
        self._theirs.acquire()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Create the thread; it does not run before its first turn."""
        self._thread = _Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """Yield until it has ended, once for each second; outside of turns, return at once."""
        for _ in range(_pauses(timeout)):
            if not self.done:
                pause()

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return not self.done

    def go(self) -> None:
        """Run it to its next pause or its end."""
        if self.done:
            return
        before, Turn.current = Turn.current, self
        self._mine.release()
        self._theirs.acquire()
        Turn.current = before

    def kill(self) -> None:
        """Kill it at its current pause, as a power failure does."""
        self.dead = True
        self.go()

    def pause(self) -> None:
        """Yield to other threads; called by the thread itself."""
        if self.dead:
            raise CrashedError
        self._theirs.release()
        self._mine.acquire()
        if self.dead:
            raise CrashedError

    def _run(self) -> None:
        self._mine.acquire()
        try:
            if not self.dead:
                self._target(*self._args)
        except CrashedError:
            pass
        except BaseException as error:  # noqa: BLE001 - reported by the history
            self.failed = error
        finally:
            self.done = True
            self._theirs.release()


_Thread = threading.Thread
"""The real class, which patched modules no longer refer to."""


def pause() -> None:
    """Yield to other threads, if this is a cooperative thread."""
    if Turn.current is not None:
        Turn.current.pause()


def wait() -> None:
    """Yield to other threads while this one waits, including those of the same lane."""
    pause()
    if Turn.current is not None:
        Turn.current.meanwhile()


def _pauses(seconds: float | None) -> int:
    """The number of pauses that take the place of a wait."""
    return max(1, ceil(seconds or 0.0))


class Event:
    """An event that cooperative threads wait for. Replaces `threading.Event`."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Set it."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether it is set."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Yield until it is set, once for each second; returns whether it is."""
        for _ in range(_pauses(timeout)):
            if not self._is_set:
                pause()
        return self._is_set


class Condition:
    """A condition among cooperative threads, of which one runs at a time: a wait is a pause.

    Replaces `threading.Condition`: so nothing has to be locked, and time passes in other threads.
    """

    def __enter__(self) -> None:
        """Nobody else runs."""

    def __exit__(self, *_: object) -> None:
        """Nobody else ran."""

    def wait(self, timeout: float | None = None) -> None:
        """Yield to other threads once: whoever waits looks again what has changed."""
        del timeout
        wait()

    def notify_all(self) -> None:
        """Do nothing: who waits looks again at its next turn."""
