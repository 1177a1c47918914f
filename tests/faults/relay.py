"""TCP relay between client and server, which a test can disconnect, freeze and restore."""

import contextlib
import selectors
import socket
import threading
import time
from enum import Enum
from types import TracebackType
from typing import Self

_CHUNK = 65_536
_POLL_S = 0.02
"""Polling interval of the line's state."""


class Line(Enum):
    """States of the relay."""

    OPEN = "open"
    FROZEN = "frozen"
    """Connections stay open without data: a server that hangs."""
    CUT = "cut"
    """Connections are closed, new ones too: a server that is down."""


class Relay:
    """Relays connections to one server on loopback; use it in `with`."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._line = Line.OPEN
        self._stopped = False
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._run, name="relay", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped = True
        self._thread.join(10)
        self._listener.close()

    def set(self, line: Line) -> None:
        """Change the state of the relay."""
        self._line = line

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._stopped:
                if self._line is Line.FROZEN:
                    time.sleep(_POLL_S)
                    continue
                if self._line is Line.CUT:
                    self._drop_all(selector)
                for key, _ in selector.select(_POLL_S):
                    end = key.fileobj
                    if end is self._listener:
                        self._accept(selector)
                    elif isinstance(end, socket.socket) and end in self._pairs:
                        self._pass_on(selector, end)
            self._drop_all(selector)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        client, _ = self._listener.accept()
        if self._line is Line.CUT:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port), 5)
        except OSError:  # the server is down
            client.close()
            return
        self._pairs[client], self._pairs[server] = server, client
        for end in (client, server):
            selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, selector: selectors.BaseSelector, end: socket.socket) -> None:
        other = self._pairs[end]
        try:
            data = end.recv(_CHUNK)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass  # one side was closed: drop both below
        self._drop(selector, end)

    def _drop(self, selector: selectors.BaseSelector, end: socket.socket) -> None:
        other = self._pairs.pop(end)
        self._pairs.pop(other)
        for each in (end, other):
            selector.unregister(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _drop_all(self, selector: selectors.BaseSelector) -> None:
        while self._pairs:
            self._drop(selector, next(iter(self._pairs)))
