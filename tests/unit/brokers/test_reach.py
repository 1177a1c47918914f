import socket
import time

from brokers.ports import free_port
from brokers.reach import why_nobody_listens


def test_an_address_that_refuses_is_told_at_once() -> None:
    """No driver has to try for seconds to find that out."""
    began = time.monotonic()
    assert why_nobody_listens(f"127.0.0.1:{free_port()}", 1, 60.0) == "connection refused"
    assert time.monotonic() - began < 2


def test_one_that_listens_is_enough() -> None:
    """Addresses with a scheme and with a default port are understood."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert why_nobody_listens(f"127.0.0.1:{free_port()},127.0.0.1:{port}", 1, 5.0) == ""
        assert why_nobody_listens(f"PLAINTEXT://127.0.0.1:{port}", 1, 5.0) == ""
        assert why_nobody_listens("127.0.0.1", port, 5.0) == ""


def test_a_name_that_does_not_exist_is_told() -> None:
    """In the system's own words."""
    assert why_nobody_listens("no-such-host.invalid:1", 1, 5.0)


def test_ipv6_addresses_are_understood() -> None:
    """In brackets, as everywhere."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as server:
        assert why_nobody_listens(f"[::1]:{server.getsockname()[1]}", 1, 5.0) == ""
