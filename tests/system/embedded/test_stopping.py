"""Signals to long-running commands: they end also during their start, without leftovers."""

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
"""Includes the class archive, which the first `up` on a machine creates."""
ENDS_WITHIN_S = 100.0
GIVES_UP = "masters are unresponsive"
"""Spark's message after a minute without an answer of the master: the session's start was not
interrupted."""
OUTPUT = "out"


@contextmanager
def medusa(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A `medusa` command in a separate process group, in an empty project."""
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
    """Arguments of a node on a stack, with its data in a folder."""
    settings = {
        "data": str(folder / "data"),
        "node": folder.name.replace("_", "-"),
        "kafka.bootstrap_servers": stack.kafka_bootstrap_servers,
        "zookeeper.connect": stack.zookeeper_connect,
        "registry.url": stack.registry_url,
        "cache": str(stack.cache),
    }
    return ("node", "start", *(f"--set={name}={value}" for name, value in settings.items()))


def output(folder: Path) -> str:
    """The output of a command so far."""
    return (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")


def group(leader: int) -> set[int]:
    """The running processes of a group."""
    table = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split() for line in table.splitlines())
    return {int(pid) for pid, of, state in rows if int(of) == leader and state[0] != "Z"}


@pytest.fixture
def long_opening(embedded_stack: EmbeddedStack, tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """Arguments of a node whose session waits for a Spark master that never answers."""
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
def test_a_node_that_starts_its_spark_session_ends_at_once(
    long_opening: tuple[str, ...],
    tmp_path: Path,
    wait_for: WaitFor,
    number: signal.Signals,
    *,
    whole_group: bool,
    code: int,
) -> None:
    """Its Java process ends too, also when Java receives the signal first; no error is reported."""
    with medusa(tmp_path, *long_opening) as process:
        wait_for(
            lambda: "opening the Spark session" in output(tmp_path) and len(group(process.pid)) > 1,
            "Java starts",
            within_s=STARTS_WITHIN_S,
        )
        (os.killpg if whole_group else os.kill)(process.pid, number)
        assert process.wait(ENDS_WITHIN_S) == code
        wait_for(lambda: not group(process.pid), "all of it is gone")
    words = output(tmp_path)
    assert "stopping…" in words
    for noise in (GIVES_UP, "Traceback", "bug", "py4j"):
        assert noise not in words


def test_a_running_node_shuts_down_in_order(
    embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """After Ctrl-C its name is released at once, and the exit code is 130."""
    arguments = node(tmp_path, embedded_stack.settings)
    with medusa(tmp_path, *arguments) as process:
        wait_for(lambda: "is up; its log" in output(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN_S) == 130
    store = ZooKeeperStore.connect(embedded_stack.settings.zookeeper_connect, 10.0)
    try:
        names = {record.node for record in Catalog(store, Znodes("")).nodes.all()}
    finally:
        store.close()
    assert not any(f"--set=node={name}" in arguments for name in names)


def test_unreachable_servers_are_reported_at_once(tmp_path: Path, jar_cache: Path) -> None:
    """Before the node starts a session: the server, the reason, and the command that starts it."""
    port = free_port()
    arguments = ("node", "start", f"--set=zookeeper.connect=127.0.0.1:{port}/medusa")
    with medusa(tmp_path, *arguments, f"--set=cache={jar_cache}") as process:
        assert process.wait(ENDS_WITHIN_S) == 69
    words = output(tmp_path)
    assert "connecting to ZooKeeper" in words
    assert "opening the Spark session" not in words
    assert f"ZooKeeper 127.0.0.1:{port}: no ZooKeeper server can be reached" in words
    assert "`medusa up`" in words


def up(settings: StackSettings) -> tuple[str, ...]:
    """Arguments of `medusa up` with a node on these ports."""
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
    """Send a signal to a stack and its node while they start; returns the exit code.

    Servers, node and control file must not exist when it ends.
    """
    with medusa(folder, *up(settings)) as process:

        def node_starts() -> bool:
            assert process.poll() is None, output(folder)
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
    words = output(folder)
    assert words.count("stopping…") == 1
    assert "Traceback" not in words
    # At once: it does not wait until the start is complete.
    assert "Medusa is up" not in words
    assert read_control(settings.data) is None
    return code


@pytest.mark.second_tier(
    "test_up_can_be_interrupted_and_started_again; test_guide.py, where `medusa down` sends SIGTERM"
)
def test_sigterm_ends_up_during_its_start(
    tmp_path: Path, jar_cache: Path, wait_for: WaitFor
) -> None:
    """As Ctrl-C does, with another exit code."""
    settings = stack_settings(tmp_path / "data", jar_cache)
    assert stop_while_it_starts(tmp_path, settings, signal.SIGTERM, wait_for) == 0


def test_up_can_be_interrupted_and_started_again(
    tmp_path: Path, jar_cache: Path, wait_for: WaitFor
) -> None:
    """Ctrl-C ends `up` during its start and while it runs; the data folder stays usable.

    While it runs, other commands of the project use its ports; afterwards
    those of the settings.
    """
    settings = stack_settings(tmp_path / "data", jar_cache)
    assert stop_while_it_starts(tmp_path, settings, signal.SIGINT, wait_for) == 130
    config_show = ("config", "show", f"--data={settings.data}", "-o", "json")
    with medusa(tmp_path, *up(settings), "--no-node") as process:
        wait_for(lambda: "Medusa is up" in output(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        words = output(tmp_path)
        assert f"export KAFKA_BOOTSTRAP_SERVERS={settings.kafka_bootstrap_servers} " in words
        assert f"SCHEMA_REGISTRY_URL={settings.registry_url}" in words
        assert settings.registry_url in answer(tmp_path, config_show)
        process.send_signal(signal.SIGINT)
        assert process.wait(ENDS_WITHIN_S) == 130
    assert settings.registry_url not in answer(tmp_path, config_show)


def answer(folder: Path, arguments: tuple[str, ...]) -> str:
    """The output of another command."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipeline.cli.main", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
