"""Accept loop with a connection limit, and its log."""

import asyncio
import errno
import logging
import socket
import ssl
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.rest import acceptor
from schemas.rest.acceptor import Acceptor, LogRateLimit
from schemas.rest.connection_limits import OVERLOADED_MAX, Admission, ConnectionLimits
from schemas.server import Certificate
from tests.certificates import LOOPBACK, Authority
from tests.conftest import WaitFor
from tests.unit.schemas.rest.running import TIMEOUT_S, Service, head, read_to_end, status_of


def test_frequent_events_are_logged_rarely() -> None:
    """At once, and then with the number of suppressed ones; none is lost."""
    seldom = LogRateLimit(every_s=10.0)
    reported = [seldom.count_event(now) for now in (0.0, 0.0, 9.9, 10.0, 10.1, 50.0)]
    assert reported == [1, 0, 0, 3, 0, 2]


def test_existing_connections_are_served_at_the_limit() -> None:
    """New idle connections fill the limit, and never displace existing ones."""
    with Service(connections_max=2) as service, ExitStack() as open_ones:
        assert service.http.get("/subjects").status_code == 200
        inside = open_ones.enter_context(service.connect())
        strangers = [open_ones.enter_context(service.connect()) for _ in range(OVERLOADED_MAX)]
        for _ in range(3):
            inside.sendall(head("GET /schemas/types"))
            assert status_of(inside) == 200
            assert service.http.get("/subjects").status_code == 200
        strangers[-1].sendall(head("GET /subjects"))
        assert status_of(strangers[-1]) == 503


def test_connections_above_the_refusal_limit_are_closed_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Without a response, and without a log line for each."""
    with Service(connections_max=1) as service, ExitStack() as open_ones:
        for _ in range(1 + OVERLOADED_MAX):
            open_ones.enter_context(service.connect())
        for _ in range(20):
            with service.connect() as one:
                assert read_to_end(one) == b""
    lines = [one.getMessage() for one in caplog.records if one.name == acceptor.__name__]
    assert lines[0] == "connections refused: 1; there is room for 1"
    assert len(lines) < 20


def test_closed_connections_free_their_places(wait_for: WaitFor) -> None:
    """However they were closed."""
    with Service(connections_max=1) as service:
        with ExitStack() as open_ones:
            for _ in range(3):
                open_ones.enter_context(service.connect())

        def served() -> bool:
            with service.connect() as one:
                one.sendall(head("GET /subjects", "Connection: close"))
                return read_to_end(one).startswith(b"HTTP/1.1 200 ")

        wait_for(served, "room for one")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Signs the certificate of the registry."""
    return Authority(tmp_path / "authority", "authority")


def _tls(authority: Authority) -> Certificate:
    proof = authority.sign("registry")
    return Certificate(proof.certificate, proof.key)


def test_a_connection_counts_before_its_handshake(authority: Authority) -> None:
    """One without a TLS handshake takes a place, too."""
    with ExitStack() as open_ones:
        certificate = _tls(authority)
        service = open_ones.enter_context(Service(certificate=certificate, connections_max=1))
        for _ in range(1 + OVERLOADED_MAX):
            open_ones.enter_context(service.connect())
        with service.connect() as one:
            assert read_to_end(one) == b""


def _served(service: Service, trust: ssl.SSLContext) -> bool:
    url = f"{service.server.url}/subjects"
    try:
        answer = httpx.get(url, verify=trust, trust_env=False, timeout=TIMEOUT_S)
    except httpx.TransportError:
        return False
    return answer.status_code == 200


def test_a_handshake_has_a_deadline_and_leaves_no_resources(
    authority: Authority, wait_for: WaitFor
) -> None:
    """Neither a missing one, nor a malformed one."""
    trust = ssl.create_default_context(cafile=str(authority.ca))
    certificate = _tls(authority)
    with Service(certificate=certificate, head_within_s=1.0, connections_max=1) as service:
        for sent in (b"", b"\x16\x03\x01\x02\x00", head("GET /subjects")):
            with service.connect() as one:
                one.sendall(sent)
                read_to_end(one)
            wait_for(lambda: _served(service, trust), "room for one")


def test_an_idle_tls_connection_is_closed_without_a_goodbye(
    authority: Authority, wait_for: WaitFor
) -> None:
    """TLS would wait for it as long as for responses to be read."""
    trust = ssl.create_default_context(cafile=str(authority.ca))
    certificate = _tls(authority)
    with (
        Service(
            certificate=certificate, head_within_s=1.0, taken_within_s=600.0, connections_max=1
        ) as service,
        service.connect() as one,
        trust.wrap_socket(one, server_hostname=LOOPBACK),
    ):
        wait_for(lambda: _served(service, trust), "room for one")


class _Failing(socket.socket):
    """A listener of a process without free file descriptors, for some attempts."""

    fails = 5
    accepted = 0

    def accept(self) -> tuple[socket.socket, Any]:
        """Fail, and succeed later."""
        self.accepted += 1
        if self.accepted <= self.fails:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_accept_is_retried_at_intervals_without_file_descriptors(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not as often as the listener is ready, and with one log line."""
    monkeypatch.setattr(acceptor, "RETRY_S", 0.01)
    caplog.set_level(logging.WARNING)

    async def tried() -> tuple[int, int]:
        loop = asyncio.get_running_loop()
        met = asyncio.Event()

        async def serve(connection: socket.socket, _: Admission) -> None:
            met.set()
            connection.close()

        retries = 0
        later = loop.call_later

        def call_later(delay: float, call: Any, *arguments: Any) -> asyncio.TimerHandle:
            nonlocal retries
            retries += delay == acceptor.RETRY_S
            return later(delay, call, *arguments)

        monkeypatch.setattr(loop, "call_later", call_later)
        with _Failing() as listener:
            listener.bind((LOOPBACK, 0))
            listener.listen()
            opened = Acceptor(listener, ConnectionLimits(1, 1), serve)
            opened.open()
            with socket.create_connection(listener.getsockname(), TIMEOUT_S):
                await asyncio.wait_for(met.wait(), TIMEOUT_S)
            opened.close()
            return listener.accepted, retries

    accepted, retries = asyncio.run(tried())
    assert retries == _Failing.fails
    assert accepted <= _Failing.fails + 2
    lines = [one.getMessage() for one in caplog.records]
    assert len(lines) == 1
    assert "Too many open files" in lines[0]
