"""Sender of a node's heartbeats: keeps the child process that sends them, and reports to it."""

import contextlib
import fcntl
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from pipeline.heartbeats.steps import StepAge
from pipeline.node.heartbeats import child
from pipeline.node.heartbeats.messages import Orders, Reports, encode_orders
from pipeline.user_code.variables import needed

REPORT_S: Final = 0.1
"""Between two reports to the child."""
AGAIN_FIRST_S: Final = 0.2
"""Before a child that has ended is started again; doubles up to `AGAIN_MOST_S`."""
AGAIN_MOST_S: Final = 30.0
LIVED_REPORTS: Final = 600
"""A child that got so many reports was not ended by its own start: the pause is the first again."""
HANGS_REPORTS: Final = 100
"""A child that has no room for so many reports in a row hangs, and is ended."""
PIPE_BYTES: Final = 4_096
"""The pipe to the child is that small, where it can be, so that one that hangs is noticed soon."""
CLOSE_S: Final = 5.0
_CHUNK: Final = 65_536

_log = logging.getLogger(__name__)


class Process(Protocol):
    """The child process."""

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""

    def report(self, age_ms: int, steps: Sequence[StepAge]) -> bool:
        """Report the age of the agent's last decision, and the lanes' steps; never waits.

        False: there was no room, since it has not read for a while.
        """

    def lines(self) -> tuple[str, ...]:
        """The lines that it has written since the last call; never waits."""

    def close(self, within_s: float) -> None:
        """Let it send the last heartbeat and end; kill it after `within_s`."""

    def kill(self) -> None:
        """End it without a last heartbeat: the node goes on."""


class HeartbeatSender:
    """Sends heartbeats from its creation until it is closed.

    Args:
        orders: whose heartbeats, and the brokers.
        age_ms: time since the agent's last decision: `Pulse.age_ms`.
        steps: those of the lanes: `LaneSteps.ages`.
        start: starts the child process.
    """

    def __init__(
        self,
        orders: Orders,
        age_ms: Callable[[], int],
        steps: Callable[[], Sequence[StepAge]],
        start: Callable[[Orders], Process] | None = None,
    ) -> None:
        self._orders = orders
        self._age_ms = age_ms
        self._steps = steps
        self._start = start or ChildProcess
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._work, name="heartbeats", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Send the last heartbeat, which says that the node has ended, and end the child."""
        self._closed.set()
        self._thread.join(2 * CLOSE_S)

    def _work(self) -> None:
        pause_s = AGAIN_FIRST_S
        while not self._closed.is_set():
            try:
                reports, how = self._one_child()
            except Exception as error:  # noqa: BLE001 - the thread's top: heartbeats must go on
                reports, how = 0, f"{type(error).__name__}: {error}"
            if self._closed.is_set():
                return
            if reports >= LIVED_REPORTS:
                pause_s = AGAIN_FIRST_S
            level = logging.WARNING if pause_s == AGAIN_FIRST_S else logging.DEBUG
            _log.log(level, "heartbeats pause, and their process is started again: %s", how)
            self._closed.wait(pause_s)
            pause_s = min(AGAIN_MOST_S, 2 * pause_s)

    def _one_child(self) -> tuple[int, str]:
        """Run a child until it or the node ends: how many reports it got, and how it ended."""
        process, reports, unread = self._start(self._orders), 0, 0
        try:
            while process.code is None and not self._closed.wait(REPORT_S):
                unread = 0 if process.report(self._age_ms(), self._steps()) else unread + 1
                if unread >= HANGS_REPORTS:
                    return reports, "it hangs"
                reports += 1
                for line in process.lines():
                    _log_line(line)
        finally:
            if self._closed.is_set():
                process.close(CLOSE_S)
            else:
                process.kill()
        return reports, f"it ended with exit code {process.code}"


class ChildProcess:
    """The process of `child.py`; it outlives the node by one heartbeat.

    It has a session of its own, so that no signal to the node's group ends it.

    Args:
        orders: passed through its standard input, whose only other end is here.
    """

    def __init__(self, orders: Orders) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - Medusa's own program
            [sys.executable, "-P", "-m", child.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=needed(os.environ),
            start_new_session=True,
            bufsize=0,
        )
        assert self._process.stdin is not None  # noqa: S101 - it is a pipe
        assert self._process.stdout is not None  # noqa: S101 - the same
        self._to, self._from = self._process.stdin, self._process.stdout
        self._rest = b""
        with contextlib.suppress(BrokenPipeError):  # it has ended: `code` says so
            self._to.write(encode_orders(orders))
        if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
            fcntl.fcntl(self._to.fileno(), fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._to.fileno(), False)
        os.set_blocking(self._from.fileno(), False)
        self._reports = Reports(self._to.fileno())

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def report(self, age_ms: int, steps: Sequence[StepAge]) -> bool:
        """Report both; False: dropped, since the child has not read for a while."""
        return self._reports.put(age_ms, steps)

    def lines(self) -> tuple[str, ...]:
        """The lines that it has written since the last call."""
        with contextlib.suppress(BlockingIOError):
            self._rest += os.read(self._from.fileno(), _CHUNK)
        *lines, self._rest = self._rest.split(b"\n")
        return tuple(line.decode("utf-8", "replace") for line in lines)

    def close(self, within_s: float) -> None:
        """Close its input, wait for its end, and kill it if that does not come."""
        self._to.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(within_s)
        self.kill()

    def kill(self) -> None:
        """End it while its input is open, as the end of that would be the node's."""
        self._process.kill()
        self._process.wait()
        self._to.close()
        self._from.close()


def _log_line(line: str) -> None:
    if line:
        _log.warning("heartbeats are not sent: %s", line)
    else:
        _log.info("heartbeats are sent again")
