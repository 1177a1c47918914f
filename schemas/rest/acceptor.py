"""Accepts connections: as many as there is room for, and no more.

One too many is refused before it costs anything; when the process or the machine has nothing left
for a further one, the next is looked for a little later. Neither floods the log.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from schemas.rest.room import Entry, Room

RETRY_S: Final = 1.0
TELL_EVERY_S: Final = 10.0
_AT_ONCE = 16
_LOG = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[socket.socket, Entry], Coroutine[None, None, None]]


class Seldom:
    """Counts what happens often, and is told seldom."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._count = 0
        self._next_at_s = float("-inf")

    def one_more(self, now_s: float) -> int:
        """How often it has happened since it was last told; 0 as long as that is not due."""
        self._count += 1
        if now_s < self._next_at_s:
            return 0
        count, self._count = self._count, 0
        self._next_at_s = now_s + self._every_s
        return count


class Acceptor:
    """Accepts connections.

    Args:
        listener: where they come; closed with the acceptor.
        room: how many may be open.
        serve: serves a connection to its end.
    """

    def __init__(self, listener: socket.socket, room: Room, serve: Serve) -> None:
        self._listener = listener
        self._room = room
        self._serve = serve
        self._open: dict[Entry, set[asyncio.Task[None]]] = {Entry.SERVED: set(), Entry.TOLD: set()}
        self._refused = Seldom(TELL_EVERY_S)
        self._failed = Seldom(TELL_EVERY_S)
        self._again: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    def open(self) -> None:
        """Accept connections from now on."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._accept)

    def close(self) -> list[asyncio.Task[None]]:
        """Accept no further connection; gives the tasks that serve the open ones."""
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
                self._rest(error)
                return
            self._receive(connection)

    def _receive(self, connection: socket.socket) -> None:
        served, told = (len(self._open[entry]) for entry in (Entry.SERVED, Entry.TOLD))
        entry = self._room.entry(served, told)
        if entry is not Entry.SERVED and (count := self._refused.one_more(self._loop.time())):
            _LOG.warning("connections refused: %d; there is room for %d", count, self._room.served)
        if entry is Entry.SHUT_OUT:
            connection.close()
            return
        tasks = self._open[entry]
        task = self._loop.create_task(self._serve(connection, entry))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def _rest(self, error: OSError) -> None:
        """Look away for a while: the listener would be reported as ready again and again."""
        if count := self._failed.one_more(self._loop.time()):
            _LOG.warning(
                "no further connection can be accepted: %s; tried again every %g s, failed: %d",
                error.strerror or error,
                RETRY_S,
                count,
            )
        self._loop.remove_reader(self._listener)
        self._again = self._loop.call_later(RETRY_S, self.open)
