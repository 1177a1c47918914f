"""Clients that are slow, or break off: nobody waits for them for ever."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from schemas.rest.app import overloaded
from schemas.rest.patience import Patience, Patient
from tests.conftest import WaitFor
from tests.unit.schemas.rest.running import Service, head, read_to_end

CHUNKED = "Transfer-Encoding: chunked"
BROKEN = b"zz\r\nhello\r\n"


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing that a client does is an error of ours."""
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
def test_a_body_that_breaks_after_its_answer_ends_the_connection(
    request_line: str, more: tuple[str, ...], status: bytes
) -> None:
    """There is nothing left to say."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head(request_line, CHUNKED, *more))
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(4_096)
        assert answer.startswith(b"HTTP/1.1 " + status)
        connection.sendall(BROKEN)
        assert read_to_end(connection) == b""


@pytest.mark.usefixtures("quiet")
def test_a_body_that_breaks_before_its_answer_is_told_so() -> None:
    """Once: the answer to what came before it is not sent, too."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head("POST /subjects/s", "Content-Type: application/json", CHUNKED))
        connection.sendall(BROKEN)
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.usefixtures("quiet")
def test_a_body_that_breaks_while_its_request_is_answered_is_told_so() -> None:
    """The answer that is on its way has nobody left who waits for it."""
    with Service() as service, service.connect() as connection:
        connection.sendall(head("POST /nowhere", CHUNKED) + BROKEN)
        answer = read_to_end(connection)
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1") == 1
        assert service.http.get("/subjects").status_code == 200


def _refuses(connection: socket.socket, data: bytes) -> Callable[[], bool]:
    """Whether the other side is gone, as is found by sending."""
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
    """Also of one that never stops to come, byte for byte."""
    with Service(head_within_s=0.5) as service, service.connect() as connection:
        connection.sendall(head("POST /nowhere", "Content-Length: 1000000"))
        wait_for(_refuses(connection, b" "), "the end of the connection")


def test_who_takes_no_answers_is_left(wait_for: WaitFor) -> None:
    """Requests without end, and not one answer read."""
    with Service(taken_within_s=0.5) as service:
        for number in range(20):
            assert service.register(f"{number}{'x' * 200}", '"int"').status_code == 200
        with service.connect() as connection:
            requests = head("GET /subjects") * 100
            wait_for(_refuses(connection, requests), "the end of the connection")
        assert service.http.get("/subjects").status_code == 200


class _Loop:
    """A loop whose time is moved by hand."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, call: Callable[..., None], *arguments: Any) -> "_Timer":
        """Keep a timer."""
        timer = (delay, lambda: call(*arguments))
        self.timers.append(timer)
        return _Timer(lambda: self.timers.remove(timer))

    def pass_by(self, delay: float) -> None:
        """Let the timers of this length go off."""
        due = [one for one in self.timers if one[0] == delay]
        for timer in due:
            self.timers.remove(timer)
            timer[1]()


class _Timer:
    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel


class _Transport(asyncio.Transport):
    """A connection that is nowhere."""

    unsent = 0
    aborted = False
    limits: tuple[int | None, int | None] = (None, None)

    def get_write_buffer_size(self) -> int:
        """What a test says."""
        return self.unsent

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Keep them."""
        self.limits = (high, low)

    def is_closing(self) -> bool:
        """Whether it was ended."""
        return self.aborted

    def abort(self) -> None:
        """End it."""
        self.aborted = True


def _connected(loop: _Loop, transport: _Transport) -> Patient:
    config = uvicorn.Config(overloaded, http="h11", lifespan="off", log_config=None)
    given: dict[str, Any] = {"config": config, "server_state": ServerState(), "app_state": {}}
    client = Patient(Patience(10.0, 30.0), set(), _loop=loop, **given)
    client.connection_made(transport)
    return client


def test_who_takes_answers_slowly_is_not_left() -> None:
    """As long as some is taken within each period; all that is unsent counts."""
    loop, transport = _Loop(), _Transport()
    client = _connected(loop, transport)
    assert transport.limits == (1, 0)
    transport.unsent = 1_000
    client.pause_writing()
    for unsent in (900, 500, 499):
        transport.unsent = unsent
        loop.pass_by(30.0)
        assert not transport.aborted
    loop.pass_by(30.0)
    assert transport.aborted


def test_nothing_is_awaited_when_all_is_taken() -> None:
    """Nor from a client that has gone."""
    loop, transport = _Loop(), _Transport()
    client = _connected(loop, transport)
    client.pause_writing()
    client.resume_writing()
    assert [delay for delay, _ in loop.timers] == [10.0]
    client.pause_writing()
    client.connection_lost(ConnectionResetError())
    assert loop.timers == []
