"""Commands that run until a signal: it ends them also while they start, and nothing is left."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from brokers.embedded.control import read_control, running_stack
from brokers.embedded.stack import EmbeddedStack, StackSettings
from brokers.ports import free_port
from brokers.zookeeper import ZooKeeperStore
from pipeline.catalog.catalog import Catalog
from pipeline.names import Znodes
from tests.conftest import WaitFor, stack_settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]

STARTS_WITHIN_S = 300.0
"""Includes the archive of Spark's classes, which the first `up` on a machine makes."""
ENDS_WITHIN_S = 100.0
GIVES_UP = "masters are unresponsive"
"""Spark writes it after a minute without an answer of the cluster's master: the end of an opening
that was not broken off."""
OUTPUT = "out"


@contextmanager
def medusa(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A `medusa` command in a process group of its own, in an empty project."""
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pipeline.cli.main", *arguments],
            stdout=output,
            stderr=output,
            cwd=folder,
            start_new_session=True,
        )
    with process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def node(folder: Path, stack: StackSettings) -> tuple[str, ...]:
    """How to start a node of a stack that keeps its data in a folder."""
    settings = {
        "data": str(folder / "data"),
        "node": folder.name.replace("_", "-"),
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
        "cache": str(stack.cache),
    }
    return ("node", "start", *(f"--set={name}={value}" for name, value in settings.items()))


def said(folder: Path) -> str:
    """All that a command wrote so far."""
    return (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")


def group(leader: int) -> set[int]:
    """The processes of a group that have not ended."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in table.splitlines())
    return {int(pid) for pid, of, state in rows if int(of) == leader and state[0] != "Z"}


@pytest.fixture
def long_opening(embedded_stack: EmbeddedStack, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """How to start a node whose session waits for a Spark master that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        master = f"spark://127.0.0.1:{server.getsockname()[1]}"
        yield (*node(tmp_path, embedded_stack.settings), f"--set=spark.master={master}")


@pytest.mark.parametrize(
    ("number", "whole_group", "code"),
    [
        (signal.SIGTERM, False, 0),
        (signal.SIGINT, True, 130),
        pytest.param(
            *(signal.SIGTERM, True, 0),
            marks=pytest.mark.second_tier("the other two: SIGTERM, and a signal to the group"),
        ),
    ],
)
def test_a_node_that_opens_its_session_ends_at_once(
    long_opening: tuple[str, ...],
    tmp_path: Path,
    wait_for: WaitFor,
    number: signal.Signals,
    *,
    whole_group: bool,
    code: int,
) -> None:
    """Its Java process ends too, also when that gets the signal first; no error is reported."""
    with medusa(tmp_path, *long_opening) as process:
        wait_for(
            lambda: "opening the Spark session" in said(tmp_path) and len(group(process.pid)) > 1,
            "Java starts",
            within_s=STARTS_WITHIN_S,
        )
        (os.killpg if whole_group else os.kill)(process.pid, number)
        assert process.wait(ENDS_WITHIN_S) == code
        wait_for(lambda: not group(process.pid), "all of it is gone")
    words = said(tmp_path)
    assert "stopping…" in words
    for noise in (GIVES_UP, "Traceback", "bug", "py4j"):
        assert noise not in words


def test_a_node_that_runs_ends_in_order(
    embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """After Ctrl-C its name is free at once, and the exit code is 130."""
    arguments = node(tmp_path, embedded_stack.settings)
    with medusa(tmp_path, *arguments) as process:
        wait_for(lambda: "is up; its log" in said(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN_S) == 130
    store = ZooKeeperStore.connect(embedded_stack.settings.zookeeper_connect, 10.0)
    try:
        names = {record.node for record in Catalog(store, Znodes("")).nodes.all()}
    finally:
        store.close()
    assert not any(f"--set=node={name}" in arguments for name in names)


def test_a_node_without_servers_says_so_at_once(tmp_path: Path, jar_cache: Path) -> None:
    """Before it opens a session: which server, why, and what starts it."""
    port = free_port()
    arguments = ("node", "start", f"--set=zookeeper.connect=127.0.0.1:{port}/medusa")
    with medusa(tmp_path, *arguments, f"--set=cache={jar_cache}") as process:
        assert process.wait(ENDS_WITHIN_S) == 69
    words = said(tmp_path)
    assert "connecting to ZooKeeper" in words
    assert "opening the Spark session" not in words
    assert f"ZooKeeper 127.0.0.1:{port}: no ZooKeeper server can be reached" in words
    assert "`medusa up`" in words


def up(settings: StackSettings) -> tuple[str, ...]:
    """How to start a stack with a node on these ports."""
    return (
        "up",
        f"--set=cache={settings.cache}",
        f"--data={settings.data}",
        f"--kafka-port={settings.kafka_port}",
        f"--zookeeper-port={settings.zookeeper_port}",
        f"--registry-port={settings.registry_port}",
    )


def stop_while_it_starts(
    folder: Path, settings: StackSettings, number: signal.Signals, wait_for: WaitFor
) -> int:
    """Start a stack with a node and send it a signal meanwhile; returns the exit code.

    Servers and node are gone when it ends, and so is the control file.
    """
    with medusa(folder, *up(settings)) as process:

        def node_starts() -> bool:
            assert process.poll() is None, said(folder)
            control = running_stack(settings.data)
            names = {member.name for member in control.members} if control else set()
            return "node node1" in names

        wait_for(node_starts, "servers and node start", within_s=STARTS_WITHIN_S)
        control = read_control(settings.data)
        assert control is not None
        process.send_signal(number)
        code = process.wait(ENDS_WITHIN_S)
        for member in control.members:
            assert not group(member.pid)
    words = said(folder)
    assert words.count("stopping…") == 1
    assert "Traceback" not in words
    # At once: it did not first wait until all of it was up.
    assert "Medusa is up" not in words
    assert read_control(settings.data) is None
    return code


@pytest.mark.second_tier(
    "test_up_is_interrupted_and_started_again, and test_guide.py, where `medusa down` sends SIGTERM"
)
def test_up_that_starts_ends_at_sigterm(tmp_path: Path, jar_cache: Path, wait_for: WaitFor) -> None:
    """As at Ctrl-C, with another exit code."""
    settings = stack_settings(tmp_path / "data", jar_cache)
    assert stop_while_it_starts(tmp_path, settings, signal.SIGTERM, wait_for) == 0


def test_up_is_interrupted_and_started_again(
    tmp_path: Path, jar_cache: Path, wait_for: WaitFor
) -> None:
    """Ctrl-C ends `up` while it starts and while it runs; the data folder stays usable.

    While it runs, other commands of the project find it at its ports; afterwards they go by the
    settings again.
    """
    settings = stack_settings(tmp_path / "data", jar_cache)
    assert stop_while_it_starts(tmp_path, settings, signal.SIGINT, wait_for) == 130
    ask = ("config", "show", f"--data={settings.data}", "-o", "json")
    with medusa(tmp_path, *up(settings), "--no-node") as process:
        wait_for(lambda: "Medusa is up" in said(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        words = said(tmp_path)
        assert f"export KAFKA_BOOTSTRAP_SERVERS={settings.kafka_bootstrap_servers} " in words
        assert f"SCHEMA_REGISTRY_URL={settings.registry_url}" in words
        assert settings.registry_url in answer(tmp_path, ask)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN_S) == 130
    assert settings.registry_url not in answer(tmp_path, ask)


def answer(folder: Path, arguments: tuple[str, ...]) -> str:
    """What another command prints."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipeline.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
