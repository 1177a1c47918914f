import logging
import resource
import socket
import time

import httpx
import pytest

from pipeline.errors import EnvironmentProblem
from schemas.client import RegistryClient
from schemas.server import RegistryServer
from tests.memory_store import MemoryStore, MemoryTree


def test_start_stop_and_start_again_on_the_same_port() -> None:
    """The schemas outlive the server, the port is free again, stopping twice is harmless."""
    tree = MemoryTree()
    first = RegistryServer(MemoryStore(tree), "127.0.0.1", 0)
    first.start()
    first.start()
    client = RegistryClient(first.url)
    assert client.register("s", '"int"') == 1
    first.stop()
    first.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(first.url, timeout=5)
    port = int(first.url.rpartition(":")[2])
    second = RegistryServer(MemoryStore(tree), "127.0.0.1", port)
    second.start()
    try:
        assert client.subjects() == ("s",)
    finally:
        client.close()
        second.stop()


def _warnings(files_max: int, patch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture) -> str:
    """The warnings of a server in a process with this limit of open files."""
    patch.setattr(resource, "getrlimit", lambda _: (files_max, resource.RLIM_INFINITY))
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    try:
        assert httpx.get(f"{server.url}/subjects", timeout=30, trust_env=False).json() == []
    finally:
        server.stop()
    return "\n".join(one.getMessage() for one in log.records if one.levelno >= logging.WARNING)


@pytest.mark.parametrize("files_max", [1_024, resource.RLIM_INFINITY])
def test_the_usual_limit_of_files_allows_all_connections(
    files_max: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a warning."""
    assert not _warnings(files_max, monkeypatch, caplog)


def test_a_low_limit_of_files_reduces_the_connections(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning, with both numbers and the remedy."""
    assert _warnings(64, monkeypatch, caplog) == (
        "the schema registry takes 32 connections at once, not 512: this process may have 64 files "
        "open; raise that limit, as with `ulimit -n`"
    )


def test_a_response_is_not_delayed_by_nagles_algorithm() -> None:
    """It would delay each one for 40 ms, until the first part is acknowledged."""
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    seconds = []
    with httpx.Client(base_url=server.url, timeout=5, trust_env=False) as client:
        for _ in range(20):
            began = time.monotonic()
            client.get("/schemas/ids/1")
            seconds.append(time.monotonic() - began)
    server.stop()
    assert min(seconds[5:]) < 0.03, seconds


def test_a_taken_port_is_named() -> None:
    """The message contains the port, and its process where that can be read."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(EnvironmentProblem, match=f"port {port}: .*taken|in use") as caught:
            RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", port).start()
    assert "another port" in caught.value.hint


@pytest.mark.parametrize("host", ["192.0.2.1", "nowhere.invalid", "1.2.3.4.5", "2001:db8::1"])
def test_a_host_that_is_not_this_machine_is_named(host: str) -> None:
    """Not the port, which is correct."""
    with pytest.raises(EnvironmentProblem, match=f"host {host}: .*this machine") as caught:
        RegistryServer(MemoryStore(MemoryTree()), host, 0).start()
    assert "port" not in f"{caught.value.message} {caught.value.hint}"
    assert "127.0.0.1" in caught.value.hint
