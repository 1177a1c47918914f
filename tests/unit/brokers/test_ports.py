"""Free ports, and the process that uses a taken one."""

import os
import socket
import subprocess
import sys

import pytest

from brokers.ports import free_port, holder_of_port, listening_inodes


def test_a_free_port_can_be_bound() -> None:
    """A port that counts as free is free."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", free_port()))


MANY = """
import sys
from brokers.ports import free_port
print(*(free_port() for _ in range(400)), flush=True)
sys.stdin.read()
"""
"""A program that reserves ports until its input ends: so many that two would choose one twice."""


def test_no_port_is_assigned_twice() -> None:
    """Neither to one process nor to two at the same time."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", MANY], stdin=pipe, stdout=pipe) as one:
        assert one.stdout is not None
        first = one.stdout.readline().split()
        done = subprocess.run(
            [sys.executable, "-c", MANY], capture_output=True, input=b"", timeout=60, check=True
        )
        one.communicate(timeout=60)
    ports = [*first, *done.stdout.split()]
    assert len(set(ports)) == len(ports) == 800


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_process_of_a_taken_port_is_named(family: socket.AddressFamily) -> None:
    """A port that this process listens on has this process, over IPv6 too."""
    with socket.socket(family) as server:
        server.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        server.listen()
        holder = holder_of_port(server.getsockname()[1])
    assert holder is not None
    assert f"process {os.getpid()}" in holder


def test_a_free_port_has_no_process() -> None:
    """A port without a listener."""
    assert holder_of_port(free_port()) is None


def test_only_listening_sockets_count() -> None:
    """A connection that uses the same local port is not the server."""
    table = (
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid  t inode\n"
        "   0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 111 1\n"
        "   1: 0100007F:2384 0100007F:A000 01 00000000:00000000 00:00000000 00000000  0  0 222 1\n"
        "   2: 0100007F:2385 00000000:0000 0A 00000000:00000000 00:00000000 00000000  0  0 333 1\n"
    )
    assert listening_inodes(table, 0x2384) == {"111"}
