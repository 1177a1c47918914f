"""Slow and disconnected clients: every wait has a deadline."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable, Iterator

import pytest

from pipeline.system_clock import SystemClock
from schemas.rest.app import overloaded
from schemas.rest.connection import Connection, Timeouts
from tests.conftest import WaitFor
from tests.unit.schemas.rest.running import Service, head, read_to_end

CHUNKED = "Transfer-Encoding: chunked"
BROKEN = b"zz\r\nhello\r\n"


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """No request may cause an internal error."""
    caplog.set_level(logging.WARNING)
    yield
    errors = [one for one in caplog.get_records("call") if one.levelno >= logging.ERROR]
    assert [one.getMessage() for one in errors] == []


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(
    ("request_line", "more", "status"),
    [
        ("POST /nowhere", (), b"404"),
        ("POST /subjects/s", ("Content-Type: a/b",), b"415"),
        ("POST /subjects/s", ("Accept: text/html",), b"406"),
    ],
)
def test_a_malformed_body_after_the_response_ends_the_connection(
    request_line: str, more: tuple[str, ...], status: bytes
) -> None:
    """There is no further response."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head(request_line, CHUNKED, *more))
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(4_096)
        assert answer.startswith(b"HTTP/1.1 " + status)
        connection.sendall(BROKEN)
        assert read_to_end(connection) == b""


@pytest.mark.usefixtures("quiet")
def test_a_malformed_body_before_the_response_is_refused() -> None:
    """Once: the response to the request itself is not sent, too."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head("POST /subjects/s", "Content-Type: application/json", CHUNKED))
        connection.sendall(BROKEN)
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.usefixtures("quiet")
def test_a_malformed_body_during_the_request_is_refused() -> None:
    """The pending response is dropped."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head("POST /nowhere", CHUNKED) + BROKEN)
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
        assert service.http.get("/subjects").status_code == 200


def _refuses(connection: socket.socket, data: bytes) -> Callable[[], bool]:
    """Whether the peer has closed the connection, detected by sending."""
    connection.setblocking(False)

    def refused() -> bool:
        try:
            connection.send(data)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True
        return False

    return refused


def test_the_rest_of_an_answered_request_has_a_deadline(wait_for: WaitFor) -> None:
    """Also of an endless one, byte for byte."""
    with Service(head_within_s=0.5) as service, service.connect() as connection:
        connection.sendall(head("POST /nowhere", "Content-Length: 1000000"))
        wait_for(_refuses(connection, b" "), "the end of the connection")


def test_a_client_that_reads_no_responses_is_disconnected(wait_for: WaitFor) -> None:
    """Requests without end, and no response read."""
    with Service(taken_within_s=0.5) as service:
        for number in range(20):
            assert service.register(f"{number}{'x' * 200}", '"int"').status_code == 200
        with service.connect() as connection:
            requests = head("GET /subjects") * 100
            wait_for(_refuses(connection, requests), "the end of the connection")
        assert service.http.get("/subjects").status_code == 200


def test_expect_100_continue() -> None:
    """The interim response is sent; the connection stays open."""
    body = b'{"schema": "\\"int\\""}'
    with Service() as service, service.connect() as connection:
        for _ in range(2):
            expects = ("Expect: 100-continue", f"Content-Length: {len(body)}")
            connection.sendall(head("POST /subjects/s/versions", *expects))
            assert connection.recv(4_096).startswith(b"HTTP/1.1 100 Continue\r\n")
            connection.sendall(body)
            assert connection.recv(4_096).startswith(b"HTTP/1.1 200 OK\r\n")


def test_pipelined_requests_get_responses_in_order() -> None:
    """HEAD has no body; with `close` the connection ends."""
    with Service() as service, service.connect() as connection:
        last = head("GET /schemas/types", "Connection: close")
        connection.sendall(head("HEAD /subjects") + head("GET /nowhere") + last)
        answers = read_to_end(connection).split(b"HTTP/1.1 ")[1:]
    assert [one[:3] for one in answers] == [b"200", b"404", b"200"]
    assert answers[0].endswith(b"\r\n\r\n")
    assert answers[2].endswith(b'\r\n\r\n["AVRO"]')


def test_a_half_closed_connection_gets_a_response() -> None:
    """The client may have closed its own direction."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head("GET /schemas/types"))
        connection.shutdown(socket.SHUT_WR)
        assert read_to_end(connection).endswith(b'["AVRO"]')


def test_idle_connections_end_with_the_server() -> None:
    """At once: no response is pending on them."""
    with Service() as service:
        idle = service.connect()
        idle.sendall(head("GET /schemas/types"))
        assert idle.recv(4_096).startswith(b"HTTP/1.1 200 OK\r\n")
    assert read_to_end(idle) == b""
    idle.close()


class _Transport(asyncio.Transport):
    """A connection in memory: of the written bytes, `takes` are sent with each check."""

    def __init__(self, protocol: asyncio.StreamReaderProtocol, takes: Iterator[int]) -> None:
        super().__init__({"sslcontext": None})
        self._protocol = protocol
        self._takes = takes
        self._unsent = 0
        self.aborted = self.closed = False
        self.limits: tuple[int | None, int | None] = (None, None)

    def get_write_buffer_size(self) -> int:
        """The bytes left after a further part was sent."""
        self._unsent = max(0, self._unsent - next(self._takes))
        if not self._unsent:
            self._protocol.resume_writing()
        return self._unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Keep them."""
        self.limits = (high, low)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep it unsent."""
        self._unsent += len(data)
        self._protocol.pause_writing()

    def is_closing(self) -> bool:
        """Whether it was ended."""
        return self.aborted or self.closed

    def abort(self) -> None:
        """End it at once."""
        self.aborted = True
        self.close()

    def close(self) -> None:
        """End it."""
        if not self.closed:
            self.closed = True
            self._protocol.connection_lost(None)


def _served(takes: Iterable[int]) -> _Transport:
    """A connection after one request, of whose response this many bytes are sent between checks."""

    async def serve() -> _Transport:
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = _Transport(protocol, iter(takes))
        protocol.connection_made(transport)
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        reader.feed_data(head("GET /subjects"))
        timeouts = Timeouts(30.0, 0.01)
        await Connection(reader, writer, overloaded, timeouts, SystemClock()).serve()
        return transport

    return asyncio.run(serve())


@pytest.mark.parametrize(
    ("takes", "left"),
    [
        ([0, 0], True),
        ([0, 1, 50, 1, 0], True),
        ([0, 1, 50, 1, 10_000], False),
        ([10_000], False),
    ],
    ids=["nothing", "nothing after some time", "slowly", "all at once"],
)
def test_a_slow_reader_of_responses_is_not_disconnected(takes: list[int], *, left: bool) -> None:
    """As long as some is sent within each period; all unsent bytes count."""
    transport = _served(takes)
    assert transport.limits == (1, 0)
    assert transport.closed
    assert transport.aborted is left
