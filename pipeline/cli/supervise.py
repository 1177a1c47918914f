"""Keeps a node of the embedded stack running: started again with back-off, but not for ever.

A node that died is remembered by ZooKeeper until its session ends, and the next one is refused
until then; the waits add up to more than that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

WAITS_S = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0)
"""Before each start after the first; then it is left alone."""
HEALTHY_AFTER_S = 300.0
"""A node that ran this long failed for a new reason: its waits begin anew."""


class Process(Protocol):
    """What is kept running."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Decision after an end: start it again at a time, or leave it; times are monotonic seconds."""

    tries: int
    again_at_s: float | None


def after_end(tries: int, ran_s: float, now_s: float) -> Ended:
    """What to do about a process that ended after it ran for so long.

    Args:
        tries: how often in a row it was started again.
        ran_s: how long it ran this time.
        now_s: now.
    """
    done = 0 if ran_s >= HEALTHY_AFTER_S else tries
    if done >= len(WAITS_S):
        return Ended(done, None)
    return Ended(done + 1, now_s + WAITS_S[done])


class Supervisor:
    """Watches one process; `look` is called now and then.

    Args:
        start: starts the process.
        name: how it is called in messages.
        tell: hears of every end and start.
    """

    def __init__(
        self, start: Callable[[], Process], name: str, tell: Callable[[str], None]
    ) -> None:
        self._start = start
        self._name = name
        self._tell = tell
        self._process: Process | None = None
        self._started_at_s = 0.0
        self._ended: Ended | None = None
        self._tries = 0

    def begin(self, now_s: float) -> None:
        """Start it for the first time."""
        self._process, self._started_at_s = self._start(), now_s

    def look(self, now_s: float) -> None:
        """Notice an end, or start it again when it is due."""
        if self._process is not None and self._process.exit_code is not None:
            code = self._process.exit_code
            self._ended = after_end(self._tries, now_s - self._started_at_s, now_s)
            self._tries, self._process = self._ended.tries, None
            at = self._ended.again_at_s
            what_next = (
                f"starting it again in {at - now_s:g} s"
                if at is not None
                else "it ended too often and is left alone; `medusa logs` may say why"
            )
            self._tell(f"{self._name} ended with exit code {code}; {what_next}")
        due = self._ended.again_at_s if self._ended else None
        if self._process is None and due is not None and now_s >= due:
            self._ended = None
            self.begin(now_s)
            self._tell(f"{self._name} was started again")
