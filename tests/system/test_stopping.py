"""What runs until it is asked to end hears that also while it starts, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time
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

pytestmark = pytest.mark.system

STARTS_WITHIN_S = 90.0
STOPS_WITHIN_S = 20.0
"""Far less than what is left of a start; a busy machine takes some seconds for the servers."""
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


def wait_for_end(process: "subprocess.Popen[bytes]") -> int:
    """The exit code of something that was asked to end."""
    began = time.monotonic()
    code = process.wait(STARTS_WITHIN_S)
    assert time.monotonic() - began < STOPS_WITHIN_S
    return code


@pytest.mark.parametrize(
    ("number", "whole_group", "code"),
    [(signal.SIGTERM, False, 0), (signal.SIGTERM, True, 0), (signal.SIGINT, True, 130)],
)
def test_a_node_that_opens_its_session_ends_at_once(
    embedded_stack: EmbeddedStack,
    tmp_path: Path,
    wait_for: WaitFor,
    number: signal.Signals,
    *,
    whole_group: bool,
    code: int,
) -> None:
    """Its Java process goes with it, also when that hears the signal first; nothing is a bug."""
    with medusa(tmp_path, *node(tmp_path, embedded_stack.settings)) as process:
        wait_for(
            lambda: "opening the Spark session" in said(tmp_path) and len(group(process.pid)) > 1,
            "Java starts",
            within_s=STARTS_WITHIN_S,
        )
        (os.killpg if whole_group else os.kill)(process.pid, number)
        assert wait_for_end(process) == code
        wait_for(lambda: not group(process.pid), "all of it is gone", within_s=5.0)
    words = said(tmp_path)
    assert "stopping…" in words
    for noise in ("Traceback", "bug", "py4j"):
        assert noise not in words


def test_a_node_that_runs_ends_in_order(
    embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """After Ctrl-C its name is free at once, and the exit code is 130."""
    arguments = node(tmp_path, embedded_stack.settings)
    with medusa(tmp_path, *arguments) as process:
        wait_for(lambda: "is up; its log" in said(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        process.send_signal(signal.SIGINT)
        assert wait_for_end(process) == 130
    store = ZooKeeperStore.connect(embedded_stack.settings.zookeeper_connect, 10.0)
    try:
        names = {record.node for record in Catalog(store, Znodes("")).nodes()}
    finally:
        store.close()
    assert not any(f"--set=node={name}" in arguments for name in names)


def test_a_node_without_servers_says_so_at_once(tmp_path: Path, jar_cache: Path) -> None:
    """Which one, why, and what starts it."""
    port = free_port()
    began = time.monotonic()
    arguments = ("node", "start", f"--set=zookeeper.connect=127.0.0.1:{port}/medusa")
    with medusa(tmp_path, *arguments, f"--set=cache={jar_cache}") as process:
        assert process.wait(STARTS_WITHIN_S) == 69
    assert time.monotonic() - began < STOPS_WITHIN_S
    assert f"ZooKeeper 127.0.0.1:{port}: no ZooKeeper server can be reached" in said(tmp_path)
    assert "`medusa up`" in said(tmp_path)


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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_up_that_starts_stops_at_once_and_says_so(
    tmp_path: Path, jar_cache: Path, wait_for: WaitFor, number: signal.Signals, code: int
) -> None:
    """Servers and node are gone when it ends, and so is what told of them."""
    settings = stack_settings(tmp_path / "data", jar_cache)
    with medusa(tmp_path, *up(settings)) as process:

        def node_starts() -> bool:
            control = running_stack(settings.data)
            names = {member.name for member in control.members} if control else set()
            return "node node1" in names

        wait_for(node_starts, "servers and node start", within_s=STARTS_WITHIN_S)
        control = read_control(settings.data)
        assert control is not None
        process.send_signal(number)
        assert wait_for_end(process) == code
        for member in control.members:
            assert not group(member.pid)
    assert said(tmp_path).count("stopping…") == 1
    assert "Traceback" not in said(tmp_path)
    assert read_control(settings.data) is None


def test_ports_of_one_run_are_told_to_other_programs_and_not_kept(
    tmp_path: Path, jar_cache: Path, wait_for: WaitFor
) -> None:
    """While it runs, commands of the project find it; afterwards the settings count again."""
    settings = stack_settings(tmp_path / "data", jar_cache)
    ask = ("config", "show", f"--data={settings.data}", "-o", "json")
    with medusa(tmp_path, *up(settings), "--no-node") as process:
        wait_for(lambda: "Medusa is up" in said(tmp_path), "it is up", within_s=STARTS_WITHIN_S)
        words = said(tmp_path)
        assert f"export KAFKA_BOOTSTRAP_SERVERS={settings.kafka_bootstrap_servers} " in words
        assert f"SCHEMA_REGISTRY_URL={settings.registry_url}" in words
        assert settings.registry_url in answer(tmp_path, ask)
        process.send_signal(signal.SIGINT)
        assert wait_for_end(process) == 130
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
