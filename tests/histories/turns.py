"""Threads of lanes that take turns: one runs at a time, and only when it is told to.

So a history is the same in every run, and a lane can be left, or ended, at any point where the
world lets it pause.
"""

import threading
from collections.abc import Callable
from typing import Any


class CrashedError(BaseException):
    """The process of this thread is gone; nothing on the way out has an effect."""


class Turn:
    """A thread that runs from one pause to the next. Stands in for `threading.Thread`."""

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
        self._target, self._args = target, args
        self._mine, self._theirs = threading.Lock(), threading.Lock()
        self._mine.acquire()
        self._theirs.acquire()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Make it ready to run; it does nothing before its first turn."""
        self._thread = _Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        """It ends when its turns do."""
        del timeout

    def is_alive(self) -> bool:
        """Whether it has turns left."""
        return not self.done

    def go(self) -> None:
        """Let it run up to its next pause or its end."""
        if self.done:
            return
        before, Turn.current = Turn.current, self
        self._mine.release()
        self._theirs.acquire()
        Turn.current = before

    def kill(self) -> None:
        """End it where it stands, as a machine that loses its power."""
        self.dead = True
        self.go()

    def pause(self) -> None:
        """Let others run; called by the thread itself."""
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
        except BaseException as error:  # noqa: BLE001 - told to whoever runs the history
            self.failed = error
        finally:
            self.done = True
            self._theirs.release()


_Thread = threading.Thread
"""The real one, which a patched module no longer has."""


def pause() -> None:
    """Let others run, if this is a thread that takes turns."""
    if Turn.current is not None:
        Turn.current.pause()
