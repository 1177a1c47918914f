import socket
import threading

import pytest

from brokers.access import Tls
from brokers.ports import free_port
from brokers.reach import connection_problem, require_tls
from pipeline.errors import RefusedError, UnavailableError


def test_a_refusing_address_is_reported_at_once() -> None:
    """Long before the limit: the test's own deadline is earlier."""
    assert connection_problem(f"127.0.0.1:{free_port()}", 1, 3_600.0) == "connection refused"


def test_one_listening_address_is_enough() -> None:
    """Addresses with a scheme and with a default port are parsed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert connection_problem(f"127.0.0.1:{free_port()},127.0.0.1:{port}", 1, 5.0) == ""
        assert connection_problem(f"PLAINTEXT://127.0.0.1:{port}", 1, 5.0) == ""
        assert connection_problem("127.0.0.1", port, 5.0) == ""


def test_an_unresolvable_name_is_reported() -> None:
    """With the message of the system."""
    assert connection_problem("no-such-host.invalid:1", 1, 5.0)


def test_ipv6_addresses_are_parsed() -> None:
    """In brackets."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert connection_problem(f"[::1]:{server.getsockname()[1]}", 1, 5.0) == ""


def test_a_server_that_accepts_without_a_response_is_unreachable() -> None:
    """TLS needs a response within the limit."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(UnavailableError, match="when encryption began"):
            require_tls(address, 0, 0.3, Tls(), "kafka")


def test_a_plain_text_server_is_reported() -> None:
    """The server at this address does not use TLS."""
    with socket.socket() as plain:
        plain.bind(("127.0.0.1", 0))
        plain.listen()

        def answer() -> None:
            connection, _ = plain.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(RefusedError, match="no encrypted connection") as caught:
            require_tls(f"127.0.0.1:{plain.getsockname()[1]}", 0, 3.0, Tls(), "kafka")
        thread.join(5.0)
    assert "kafka.tls.certificate" in caught.value.hint
