"""HTTP server: an event loop with an accept loop, and one task for each connection."""

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
from schemas.rest.connection_limits import Admission, ConnectionLimits
from schemas.rest.messages import Application

FINISH_WITHIN_S: Final = 4.0


class HttpServer:
    """HTTP server of an application, with a connection limit and timeouts.

    Args:
        app: answers requests.
        listener: the listening socket; closed with the server.
        limits: the connection limits.
        timeouts: timeouts of each client.
        clock: for the dates of answers.
        tls: context with the certificate; None: no TLS.
    """

    def __init__(
        self,
        app: Application,
        listener: socket.socket,
        limits: ConnectionLimits,
        timeouts: Timeouts,
        clock: Clock,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._app = app
        self._listener = listener
        self._limits = limits
        self._timeouts = timeouts
        self._clock = clock
        self._tls = tls
        self._open: dict[asyncio.Task[None] | None, Connection] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self.started = threading.Event()

    def run(self) -> None:
        """Serve until another thread calls `stop`."""
        asyncio.run(self._run())

    def stop(self) -> None:
        """Stop accepting connections, and end the open ones after their present answers."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._stopping.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        acceptor = Acceptor(self._listener, self._limits, self._serve)
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

    async def _serve(self, accepted: socket.socket, admission: Admission) -> None:
        """Serve one connection, from the TLS handshake to its end."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        timeouts = self._timeouts
        try:
            transport, _ = await loop.connect_accepted_socket(
                lambda: protocol,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=timeouts.head_within_s if self._tls else None,
                ssl_shutdown_timeout=timeouts.taken_within_s if self._tls else None,
            )
        except OSError:
            return  # a handshake that fails or times out is an error of the client
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        app = overloaded if admission is Admission.OVERLOADED else self._app
        connection = Connection(reader, writer, app, timeouts, self._clock)
        task = asyncio.current_task()
        self._open[task] = connection
        try:
            await connection.serve()
        finally:
            del self._open[task]
