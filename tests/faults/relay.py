"""TCP relay between client and server, which a test can disconnect, freeze and restore."""

import contextlib
import selectors
import socket
import threading
import time
from dataclasses import dataclass
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
    """Connections stay open without data: a server that hangs. Data on their way come later."""
    CUT = "cut"
    """Connections are closed, new ones too: a server that is down."""


@dataclass(slots=True)
class _End:
    """One end of a connection: its peer, and what it has yet to take of the peer's data."""

    peer: socket.socket
    pending: bytes = b""


class Relay:
    """Relays connections to one server on loopback; use it in `with`.

    An end that does not read delays only its own connection.

    Args:
        server_port: of the server.
        port: where it listens; 0: any.
    """

    def __init__(self, server_port: int, port: int = 0) -> None:
        self._server_port = server_port
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._line = Line.OPEN
        self._stopped = False
        self._ends: dict[socket.socket, _End] = {}
        self._selector = selectors.DefaultSelector()
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
        with self._selector:
            self._selector.register(self._listener, selectors.EVENT_READ)
            while not self._stopped:
                if self._line is Line.FROZEN:
                    time.sleep(_POLL_S)
                    continue
                if self._line is Line.CUT:
                    self._drop_all()
                for key, events in self._selector.select(_POLL_S):
                    end = key.fileobj
                    if end is self._listener:
                        self._accept()
                    elif isinstance(end, socket.socket) and end in self._ends:
                        self._pass_on(end, events)
            self._drop_all()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        if self._line is Line.CUT:
            client.close()
            return
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port), 5)
        except OSError:  # the server is down
            client.close()
            return
        self._ends[client], self._ends[server] = _End(server), _End(client)
        for end in (client, server):
            end.setblocking(False)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(end, selectors.EVENT_READ)

    def _pass_on(self, end: socket.socket, events: int) -> None:
        peer = self._ends[end].peer
        try:
            if events & selectors.EVENT_WRITE:
                self._send(end)
            if events & selectors.EVENT_READ:
                data = end.recv(_CHUNK)
                if not data:
                    self._drop(end)
                    return
                self._ends[peer].pending = data
                self._send(peer)
        except OSError:  # one side was closed
            self._drop(end)
            return
        self._watch(end)
        self._watch(peer)

    def _send(self, end: socket.socket) -> None:
        one = self._ends[end]
        with contextlib.suppress(BlockingIOError):
            one.pending = one.pending[end.send(one.pending) :]

    def _watch(self, end: socket.socket) -> None:
        """Read an end only while its peer has taken all, and write while it has not itself."""
        one = self._ends[end]
        events = 0 if self._ends[one.peer].pending else selectors.EVENT_READ
        events |= selectors.EVENT_WRITE if one.pending else 0
        if end not in self._selector.get_map():
            if events:
                self._selector.register(end, events)
        elif events:
            self._selector.modify(end, events)
        else:
            self._selector.unregister(end)

    def _drop(self, end: socket.socket) -> None:
        peer = self._ends.pop(end).peer
        self._ends.pop(peer)
        for each in (end, peer):
            if each in self._selector.get_map():
                self._selector.unregister(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _drop_all(self) -> None:
        while self._ends:
            self._drop(next(iter(self._ends)))
