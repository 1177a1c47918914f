"""The embedded stack on real Kafka and ZooKeeper."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from brokers.embedded.control import (
    ControlFile,
    Member,
    Stopped,
    process_born,
    read_control,
    running_stack,
    stop_running,
)
from brokers.embedded.jars import jar_folder
from brokers.embedded.processes import ChildSpec
from brokers.embedded.progress import Step, silent
from brokers.embedded.stack import EmbeddedStack, StackSettings
from brokers.kafka.admin import KafkaAdmin
from brokers.records import NewTopicSpec
from brokers.versioned_store import Create
from brokers.zookeeper import ZooKeeperStore
from pipeline.errors import EnvironmentProblem, RefusedError
from pipeline.ids import TopicName
from schemas.embedded import start_registry
from tests.conftest import WaitFor, stack_settings

pytestmark = pytest.mark.system

ANSWERS_WITHIN_S = 30.0
NAMES = ("first", "second")
"""Test data: for each name a topic, a znode and a subject that contain it."""
UNPRIVILEGED_UID = 65534

RUN_A_STACK = textwrap.dedent("""
    import sys
    from pathlib import Path
    from brokers.embedded.stack import EmbeddedStack, StackSettings
    from schemas.embedded import start_registry

    data, cache, *ports = sys.argv[1:]
    with EmbeddedStack(StackSettings(Path(data), Path(cache), *map(int, ports)), start_registry):
        print("up", flush=True)
        sys.stdin.read()
    """)
"""A program that runs a stack until it is killed or its input ends."""


@dataclass(frozen=True, slots=True)
class FirstLife:
    """A data folder after a first start and stop of its stack; it contains `NAMES[0]`.

    Args:
        settings: of that start.
        steps: its progress messages.
        left: the stack's processes that still run after the stop.
        control: the control file after the stop.
    """

    settings: StackSettings
    steps: tuple[str, ...]
    left: tuple[Member, ...]
    control: ControlFile | None

    def copy(self, folder: Path) -> StackSettings:
        """Settings of a stack on a copy of the data folder, on other ports."""
        data = folder / self.settings.data.name
        shutil.copytree(self.settings.data, data)
        return stack_settings(data, self.settings.cache)


@pytest.fixture(scope="module")
def first_life(tmp_path_factory: pytest.TempPathFactory, jar_cache: Path) -> FirstLife:
    """One first start and stop for all tests that need a folder with data.

    The letter outside ASCII is part of what these tests check: Java must find its files there.
    """
    assert jar_folder(jar_cache).is_dir()
    settings = stack_settings(tmp_path_factory.mktemp("first") / "dåta", jar_cache)
    steps: list[Step] = []
    with EmbeddedStack(settings, start_registry, steps.append) as stack:
        write_everywhere(settings, NAMES[0])
        members = members_of(stack)
    left = running(members)
    control = read_control(settings.data)
    return FirstLife(settings, tuple(step.what for step in steps), left, control)


def running(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members of a stack that still run."""
    return tuple(member for member in members if process_born(member.pid) is not None)


def members_of(stack: EmbeddedStack) -> tuple[Member, ...]:
    """The child processes of a stack as its control file lists them."""
    control = running_stack(stack.settings.data)
    assert control is not None
    return control.members


def write_everywhere(settings: StackSettings, name: str) -> None:
    """Write a record to Kafka, a value to ZooKeeper, a schema to the registry."""
    topic = TopicName(name)
    admin = KafkaAdmin(settings.kafka_bootstrap_servers, ANSWERS_WITHIN_S)
    admin.create_topics((NewTopicSpec(topic, partitions=1, replication=1),))
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    producer.produce(topic, name.encode())
    assert producer.flush(ANSWERS_WITHIN_S) == 0
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    store.apply((Create(f"/{name}", name.encode()),))
    store.close()
    body = json.dumps({"schema": '"string"'}).encode()
    request = urllib.request.Request(  # noqa: S310 - the registry of the stack
        f"{settings.registry_url}/subjects/{name}-value/versions",
        data=body,
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
        assert answer.status == 200


def assert_contains(settings: StackSettings, names: tuple[str, ...]) -> None:
    """Assert that a stack contains exactly the data of `write_everywhere` for these names."""
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    found = [store.get(f"/{name}") for name in names]
    store.close()
    assert [one.value if one else None for one in found] == [name.encode() for name in names]
    with urllib.request.urlopen(  # noqa: S310 - the registry of the stack
        f"{settings.registry_url}/subjects", timeout=ANSWERS_WITHIN_S
    ) as answer:
        assert json.load(answer) == [f"{name}-value" for name in names]
    assert [read_record(settings, name) for name in names] == [name.encode() for name in names]


def read_record(settings: StackSettings, topic: str) -> bytes | None:
    """The first record of a topic, read by a new consumer group."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.kafka_bootstrap_servers,
            "group.id": f"reader-{uuid.uuid4()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    message = consumer.poll(ANSWERS_WITHIN_S)
    consumer.close()
    record = message.value() if message is not None else None
    assert isinstance(record, bytes | None)
    return record


def controller_port(settings: StackSettings) -> int:
    """The port of Kafka's controller, which is stored in the data folder."""
    identity = json.loads((settings.data / "kafka" / "identity.json").read_text())
    return int(identity["controller_port"])


@contextmanager
def separate_process(settings: StackSettings) -> Iterator["subprocess.Popen[bytes]"]:
    """A process with a running stack; killed at the end if it still runs."""
    ports = (settings.kafka_port, settings.zookeeper_port, settings.registry_port)
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", RUN_A_STACK),
            *(str(settings.data), str(settings.cache), *map(str, ports)),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"up\n"
            yield process
        finally:
            process.kill()


@contextmanager
def as_ordinary_user() -> Iterator[None]:
    """Run with the permissions of an unprivileged user, also where tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(UNPRIVILEGED_UID)
    try:
        yield
    finally:
        os.seteuid(0)


def test_all_servers_answer_after_start(embedded_stack: EmbeddedStack) -> None:
    """Once `start` returned, all three servers answer, and the control file lists the processes."""
    settings = embedded_stack.settings
    assert KafkaAdmin(settings.kafka_bootstrap_servers, ANSWERS_WITHIN_S).cluster_id()
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    assert store.get("/no-such-path") is None
    store.close()
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{settings.registry_url}/subjects/none/versions", timeout=10)  # noqa: S310
    control = running_stack(settings.data)
    assert control is not None
    assert control.pid == os.getpid()
    assert [member.name for member in control.members] == ["zookeeper", "kafka"]
    embedded_stack.check()


def test_the_control_file_lists_additional_processes_while_they_run(
    embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """A process is removed from it when it has ended."""
    command = (sys.executable, "-c", "input()")
    short = embedded_stack.add_child(ChildSpec("short", command, tmp_path / "out", tmp_path))
    names = [member.name for member in members_of(embedded_stack)]
    assert names == ["zookeeper", "kafka", "short"]
    wait_for(lambda: not short.running, "it has ended")
    embedded_stack.forget_ended()
    assert [member.name for member in members_of(embedded_stack)] == ["zookeeper", "kafka"]


def test_a_second_stack_in_the_same_folder_is_refused(embedded_stack: EmbeddedStack) -> None:
    """The error contains the process of the first stack, which keeps running."""
    second = stack_settings(embedded_stack.settings.data, embedded_stack.settings.cache)
    with pytest.raises(RefusedError, match=f"runs here already: process {os.getpid()}"):
        EmbeddedStack(second, start_registry).start()
    embedded_stack.check()


def test_a_port_in_use_is_reported_with_its_process(
    embedded_stack: EmbeddedStack, tmp_path: Path
) -> None:
    """Kafka's port is used by the other stack's Java; the new folder is unlocked afterwards."""
    kafka = next(c for c in embedded_stack.children if c.spec.name == "kafka")
    free = stack_settings(tmp_path, embedded_stack.settings.cache)
    taken = replace(free, kafka_port=embedded_stack.settings.kafka_port)
    with pytest.raises(EnvironmentProblem, match=f"taken by java, process {kafka.pid}") as caught:
        EmbeddedStack(taken, start_registry).start()
    assert caught.value.place == "Kafka"
    assert read_control(tmp_path) is None


def test_a_full_cache_needs_no_fetch(first_life: FirstLife) -> None:
    """With every jar in the cache a first start downloads none."""
    assert first_life.steps == (
        "starting Kafka and ZooKeeper",
        "starting the schema registry",
        "the stack is up",
    )


def test_a_stopped_stack_leaves_no_process(first_life: FirstLife) -> None:
    """After `stop` both servers have ended and the control file is deleted."""
    assert first_life.left == ()
    assert first_life.control is None


def test_data_survive_a_restart_and_a_kill(
    first_life: FirstLife, tmp_path: Path, wait_for: WaitFor
) -> None:
    """After a restart on other ports, and after a kill -9 and an immediate start."""
    settings = first_life.copy(tmp_path)
    with restarted_beside_a_taken_controller_port(settings) as process:
        assert_contains(settings, NAMES[:1])
        write_everywhere(settings, NAMES[1])
        members = kill(settings, process)
        # No wait here: the start waits for the end of the previous servers.
        with EmbeddedStack(settings, start_registry) as stack:
            assert not running(members)
            assert_contains(settings, NAMES)
            assert_death_is_reported(stack, wait_for)
    wait_for(lambda: read_control(settings.data) is None, "the control file is gone")


@contextmanager
def restarted_beside_a_taken_controller_port(
    settings: StackSettings,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A stack in a separate process, whose controller port is in use by another program.

    Only Kafka itself uses that port, so Kafka chooses another one.
    """
    before = controller_port(settings)
    with (
        socket.create_server(("127.0.0.1", before)),
        separate_process(settings) as process,
    ):
        assert controller_port(settings) != before
        yield process


def kill(settings: StackSettings, process: "subprocess.Popen[bytes]") -> tuple[Member, ...]:
    """Kill a stack's process with SIGKILL; returns the stack's other processes."""
    control = running_stack(settings.data)
    assert control is not None
    assert control.pid == process.pid
    process.send_signal(signal.SIGKILL)
    process.wait(ANSWERS_WITHIN_S)
    return control.members


def assert_death_is_reported(stack: EmbeddedStack, wait_for: WaitFor) -> None:
    """Assert that `check` reports a killed server with the last lines of its log."""
    stack.check()
    zookeeper = stack.children[0]
    os.kill(zookeeper.pid, signal.SIGKILL)
    wait_for(lambda: not zookeeper.running, "ZooKeeper has ended")
    with pytest.raises(EnvironmentProblem, match="exit code 137; its last lines") as caught:
        stack.check()
    assert caught.value.place == "zookeeper"


def test_down_stops_a_stack_of_another_process(first_life: FirstLife, tmp_path: Path) -> None:
    """`stop_running` returns after all processes have ended."""
    settings = first_life.copy(tmp_path)
    with separate_process(settings):
        control = running_stack(settings.data)
        assert control is not None
        assert stop_running(settings.data) is Stopped.ENDED
        assert not running(control.members)


def test_a_server_that_fails_to_start_shows_its_last_lines(
    first_life: FirstLife, tmp_path: Path
) -> None:
    """With damaged data the error contains Kafka's reason.

    No process is left running, so a second start fails for the same reason.
    """
    settings = first_life.copy(tmp_path)
    meta = settings.data / "kafka" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(EnvironmentProblem, match=r"meta\.properties") as caught:
        EmbeddedStack(settings, start_registry).start()
    assert caught.value.place == "kafka"
    assert str(settings.data / "logs" / "kafka.log") in caught.value.hint
    with pytest.raises(EnvironmentProblem, match=r"meta\.properties"):
        EmbeddedStack(settings, start_registry).start()


def test_a_read_only_folder_is_refused(tmp_path: Path, jar_cache: Path) -> None:
    """A data folder without write permission is reported before any server starts."""
    tmp_path.chmod(0o555)
    settings = stack_settings(tmp_path / "data", jar_cache)
    with as_ordinary_user(), pytest.raises(EnvironmentProblem, match="cannot be written") as caught:
        EmbeddedStack(settings, start_registry).start()
    assert "--data" in caught.value.hint


def test_data_of_another_cluster_are_refused(first_life: FirstLife, tmp_path: Path) -> None:
    """Kafka's data must have the cluster id that is stored in the folder."""
    settings = first_life.copy(tmp_path)
    identity = settings.data / "kafka" / "identity.json"
    stored = json.loads(identity.read_text())
    identity.write_text(json.dumps({**stored, "cluster_id": "another"}))
    with pytest.raises(EnvironmentProblem, match=f"cluster {stored['cluster_id']} .*not another"):
        EmbeddedStack(settings, start_registry).start()


def test_an_old_java_is_refused(tmp_path: Path, jar_cache: Path) -> None:
    """No server starts with a Java that is too old, and the folder is unlocked."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.1\"' >&2\n")
    java.chmod(0o755)
    settings = stack_settings(tmp_path / "data", jar_cache)
    stack = EmbeddedStack(
        settings, start_registry, silent, environment={"PATH": f"{java.parent}:/bin:/usr/bin"}
    )
    with pytest.raises(EnvironmentProblem, match="Java 11 is too old"):
        stack.start()
    assert read_control(settings.data) is None
