"""The HTTP server: an event loop with an acceptor, and one task for each connection."""

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from typing import Final

from pipeline.clock import Clock
from schemas.rest.acceptor import Acceptor
from schemas.rest.app import overloaded
from schemas.rest.connection import Connection, Timeouts
from schemas.rest.messages import Application
from schemas.rest.room import Entry, Room

FINISH_WITHIN_S: Final = 4.0


class HttpServer:
    """Serves an application to a limited number of clients, each with deadlines.

    Args:
        app: answers requests.
        listener: where clients connect; closed with the server.
        room: how many connections may be open.
        timeouts: how long each client may take.
        clock: for the dates of answers.
        tls: the certificate; None: without TLS.
    """

    def __init__(
        self,
        app: Application,
        listener: socket.socket,
        room: Room,
        timeouts: Timeouts,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        self._listener = listener
        self._room = room
        self._timeouts = timeouts
        self._clock = clock
        self._tls = tls
        self._open: dict[asyncio.Task[None] | None, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self.started = threading.Event()

    def run(self) -> None:
        """Serve, until `stop` is called in another thread."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Accept no further connection, and end the open ones with the answers under way."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        acceptor = Acceptor(self._listener, self._room, self._serve)
        acceptor.open()
        self.started.set()
        await self._stopping.wait()
        tasks = acceptor.close()
        for task in tasks:
            connection = self._open.get(task)
            if connection is None:
                task.cancel()
            else:
                connection.finish()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=FINISH_WITHIN_S)
            for task in late:
                task.cancel()

    async def _serve(self, accepted: socket.socket, entry: Entry) -> None:
        """Serve one connection, from the handshake of TLS to its end."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        limits = self._timeouts
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=limits.head_within_s if self._tls else None,
                ssl_shutdown_timeout=limits.taken_within_s if self._tls else None,
            )
        except OSError:
            return  # a handshake that fails, or does not come to its end, is the client's affair
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        app = overloaded if entry is Entry.TOLD else self._app
        connection = Connection(reader, writer, app, limits, self._clock)
        task = asyncio.current_task()
        self._open[task] = connection
        try:
            await connection.serve()
        finally:
            del self._open[task]
