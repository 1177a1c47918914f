"""Restart of the embedded stack's node with back-off and a limit of attempts.

A dead node stays registered in ZooKeeper until its session expires, and the next one is refused
until then; the sum of the waits is longer than that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

WAITS_S = (1.0, 3.0, 6.0, 12.0, 24.0, 48.0)
"""Waits before each restart; after the last one there is none."""
HEALTHY_AFTER_S = 300.0
"""A node that ran this long failed for a new reason, so its waits begin again."""


class Process(Protocol):
    """Process that is restarted."""

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Decision after an exit: the time of the restart in monotonic seconds; None: no restart."""

    tries: int
    again_at_s: float | None


def decide_restart(tries: int, ran_s: float, now_s: float) -> Restart:
    """Whether and when to restart a process that has exited.

    Args:
        tries: number of restarts in a row.
        ran_s: duration of the last run.
        now_s: current time.
    """
    done = 0 if ran_s >= HEALTHY_AFTER_S else tries
    if done >= len(WAITS_S):
        return Restart(done, None)
    return Restart(done + 1, now_s + WAITS_S[done])


class Supervisor:
    """Supervisor of one process; `check` is called periodically.

    Args:
        start: starts the process.
        name: of the process, for messages.
        report: receives a message about every exit and restart.
    """

    def __init__(
        self, start: Callable[[], Process], name: str, report: Callable[[str], None]
    ) -> None:
        self._start = start
        self._name = name
        self._report = report
        self._process: Process | None = None
        self._started_at_s = 0.0
        self._restart: Restart | None = None
        self._tries = 0

    def begin(self, now_s: float) -> None:
        """Start the process."""
        self._process, self._started_at_s = self._start(), now_s

    def check(self, now_s: float) -> None:
        """Detect an exit, or restart the process when that is due."""
        if self._process is not None and self._process.exit_code is not None:
            code = self._process.exit_code
            self._restart = decide_restart(self._tries, now_s - self._started_at_s, now_s)
            self._tries, self._process = self._restart.tries, None
            at = self._restart.again_at_s
            what_next = (
                f"starting it again in {at - now_s:g} s"
                if at is not None
                else "it ended too often and is left alone; `medusa logs` may say why"
            )
            self._report(f"{self._name} ended with exit code {code}; {what_next}")
        due = self._restart.again_at_s if self._restart else None
        if self._process is None and due is not None and now_s >= due:
            self._restart = None
            self.begin(now_s)
            self._report(f"{self._name} was started again")
