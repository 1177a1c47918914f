"""Accept loop with a connection limit.

Connections above the limit are refused before they need resources; when the process or the machine
has no resources for another one, the loop pauses. Log messages about both are rate-limited.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from schemas.rest.connection_limits import Admission, ConnectionLimits

RETRY_S: Final = 1.0
LOG_EVERY_S: Final = 10.0
_AT_ONCE = 16
_LOG = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[socket.socket, Admission], Coroutine[None, None, None]]


class LogRateLimit:
    """Rate limit of log messages: counts events between messages."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._count = 0
        self._next_at_s = float("-inf")

    def count_event(self, now_s: float) -> int:
        """Count an event; returns the number since the last message, 0 if no message is due."""
        self._count += 1
        if now_s < self._next_at_s:
            return 0
        count, self._count = self._count, 0
        self._next_at_s = now_s + self._every_s
        return count


class Acceptor:
    """Accepts connections.

    Args:
        listener: the listening socket; closed with the acceptor.
        limits: the connection limits.
        serve: serves a connection to its end.
    """

    def __init__(self, listener: socket.socket, limits: ConnectionLimits, serve: Serve) -> None:
        self._listener = listener
        self._limits = limits
        self._serve = serve
        self._open: dict[Admission, set[asyncio.Task[None]]] = {
            Admission.SERVED: set(),
            Admission.OVERLOADED: set(),
        }
        self._refused = LogRateLimit(LOG_EVERY_S)
        self._failed = LogRateLimit(LOG_EVERY_S)
        self._again: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def open(self) -> None:
        """Start to accept connections."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> list[asyncio.Task[None]]:
        """Stop accepting connections; returns the tasks of the open ones."""
        if self._again is not None:
            self._again.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        return [task for tasks in self._open.values() for task in tasks]

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._pause(error)
                return
            self._receive(connection)

    def _receive(self, connection: socket.socket) -> None:
        served, overloaded = (len(tasks) for tasks in self._open.values())
        admission = self._limits.admit(served, overloaded)
        if admission is not Admission.SERVED and (
            count := self._refused.count_event(self._loop.time())
        ):
            _LOG.warning(
                "connections refused: %d; there is room for %d", count, self._limits.served
            )
        if admission is Admission.CLOSED:
            connection.close()
            return
        tasks = self._open[admission]
        task = self._loop.create_task(self._serve(connection, admission))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _pause(self, error: OSError) -> None:
        """Pause the accept loop, since the listener stays readable and the loop would spin."""
        if count := self._failed.count_event(self._loop.time()):
            _LOG.warning(
                "no further connection can be accepted: %s; tried again every %g s, failed: %d",
                error.strerror or error,
                RETRY_S,
                count,
            )
        self._loop.remove_reader(self._listener)
        self._again = self._loop.call_later(RETRY_S, self.open)
