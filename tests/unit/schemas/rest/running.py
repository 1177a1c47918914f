"""A registry served in this process, and raw connections to it."""

import socket
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

import httpx

from schemas.rest.access import Access
from schemas.server import Certificate, Guard, RegistryServer
from tests.memory_store import MemoryStore, MemoryTree

TIMEOUT_S = 30.0


class Service(AbstractContextManager["Service"]):
    """A running registry, its store, and an HTTP client for it."""

    def __init__(
        self,
        access: Access | None = None,
        certificate: Certificate | None = None,
        *,
        head_within_s: float = TIMEOUT_S,
        taken_within_s: float = TIMEOUT_S,
        connections_max: int = 512,
    ) -> None:
        self.store = MemoryStore(MemoryTree())
        guard = Guard(access, certificate, head_within_s, taken_within_s, connections_max)
        self.server = RegistryServer(self.store, "127.0.0.1", 0, guard=guard)
        self.server.start()
        self.http = httpx.Client(base_url=self.server.url, trust_env=False, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()
        self.server.stop()

    def register(self, subject: str, schema: str, **more: Any) -> httpx.Response:
        """Register a schema."""
        body = {"schema": schema, **more}
        return self.http.post(f"/subjects/{subject}/versions", json=body)

    def connect(self) -> socket.socket:
        """A raw connection."""
        url = httpx.URL(self.server.url)
        return socket.create_connection((url.host, url.port or 0), TIMEOUT_S)


def head(request: str, *lines: str) -> bytes:
    """A request line and headers; bytes that are not ASCII are sent unchanged."""
    return "\r\n".join((f"{request} HTTP/1.1", "Host: x", *lines, "", "")).encode("latin-1")


def status_of(connection: socket.socket) -> int:
    """The status of the next response on a connection."""
    received = b""
    while b"\r\n" not in received:
        more = connection.recv(4096)
        assert more, f"closed without an answer: {received!r}"
        received += more
    return int(received.split(b" ", 2)[1])


def read_to_end(connection: socket.socket) -> bytes:
    """All bytes until the server closes the connection."""
    received = b""
    while more := connection.recv(65_536):
        received += more
    return received
