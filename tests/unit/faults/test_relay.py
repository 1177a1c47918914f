import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.faults.relay import Line, Relay

WITHIN_S = 20.0
NOTHING_S = 0.2
MUCH = 32 * 1024 * 1024
"""More than the system buffers of a connection."""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """A listening socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(WITHIN_S)
        yield listening


@pytest.fixture
def relay(server: socket.socket) -> Iterator[Relay]:
    """A relay to it."""
    with Relay(server.getsockname()[1]) as running:
        yield running


@contextmanager
def connected(relay: Relay, server: socket.socket) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection through a relay: its client's end, and its server's."""
    with ExitStack() as undo:
        client = undo.enter_context(socket.create_connection(("127.0.0.1", relay.port), WITHIN_S))
        accepted, _ = server.accept()
        undo.enter_context(accepted)
        accepted.settimeout(WITHIN_S)
        yield client, accepted


def received(end: socket.socket, count: int) -> bytes:
    """The next bytes."""
    found = bytearray()
    while len(found) < count:
        data = end.recv(count - len(found))
        assert data
        found += data
    return bytes(found)


def test_bytes_are_relayed_in_both_directions(relay: Relay, server: socket.socket) -> None:
    """In order."""
    with connected(relay, server) as (client, accepted):
        client.sendall(b"request")
        assert received(accepted, 7) == b"request"
        accepted.sendall(b"response")
        assert received(client, 8) == b"response"


def test_a_client_that_does_not_read_delays_no_other(relay: Relay, server: socket.socket) -> None:
    """It finds all later, and nothing is lost."""
    with connected(relay, server) as (slow, to_slow), connected(relay, server) as (client, to_it):
        to_slow.setblocking(False)
        sent = 0
        much = bytes(range(256)) * (MUCH // 256)
        ends_at = time.monotonic() + NOTHING_S
        while time.monotonic() < ends_at:
            try:
                sent += to_slow.send(much[sent:])
            except BlockingIOError:
                time.sleep(0.01)
        assert sent < MUCH
        to_it.sendall(b"response")
        assert received(client, 8) == b"response"
        slow.sendall(b"request")
        to_slow.settimeout(WITHIN_S)
        assert received(to_slow, 7) == b"request"
        assert received(slow, sent) == much[:sent]


def test_what_a_frozen_line_holds_comes_later(relay: Relay, server: socket.socket) -> None:
    """The connection stays."""
    with connected(relay, server) as (client, accepted):
        relay.set(Line.FROZEN)
        time.sleep(NOTHING_S)
        client.sendall(b"late")
        accepted.settimeout(NOTHING_S)
        with pytest.raises(TimeoutError):
            accepted.recv(4)
        relay.set(Line.OPEN)
        accepted.settimeout(WITHIN_S)
        assert received(accepted, 4) == b"late"


def test_a_cut_line_closes_connections(relay: Relay, server: socket.socket) -> None:
    """New ones, too, until it is open again."""
    with connected(relay, server) as (client, accepted):
        relay.set(Line.CUT)
        assert client.recv(1) == accepted.recv(1) == b""
    with socket.create_connection(("127.0.0.1", relay.port), WITHIN_S) as refused:
        assert refused.recv(1) == b""
    relay.set(Line.OPEN)
    with connected(relay, server) as (client, accepted):
        client.sendall(b"again")
        assert received(accepted, 5) == b"again"


def test_a_relay_listens_again_at_its_port(server: socket.socket) -> None:
    """So a broker can name it in its properties."""
    with Relay(server.getsockname()[1]) as first:
        port = first.port
        with connected(first, server):
            pass
    with Relay(server.getsockname()[1], port) as again, connected(again, server) as (client, to_it):
        client.sendall(b"again")
        assert received(to_it, 5) == b"again"
