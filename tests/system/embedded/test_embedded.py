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
"""What tests write: for each name a topic, a znode and a subject that hold it."""
NOBODY = 65534

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
    """A data folder after its first start: `NAMES[0]` was written, and the stack was stopped.

    Args:
        settings: of that start.
        steps: its progress messages.
        left: the stack's processes that were still there after the stop.
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
    """One first start and one stop for all tests that need a folder with data in it.

    The letter outside ASCII is part of what these tests check: Java must find its files there.
    """
    assert jar_folder(jar_cache).is_dir()
    settings = stack_settings(tmp_path_factory.mktemp("first") / "dåta", jar_cache)
    steps: list[Step] = []
    with EmbeddedStack(settings, start_registry, steps.append) as stack:
        write_everywhere(settings, NAMES[0])
        members = members_of(stack)
    left = living(members)
    control = read_control(settings.data)
    return FirstLife(settings, tuple(step.what for step in steps), left, control)


def living(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """The members of a stack that have not ended."""
    return tuple(member for member in members if process_born(member.pid) is not None)


def members_of(stack: EmbeddedStack) -> tuple[Member, ...]:
    """The child processes of a stack as its control file lists them."""
    control = running_stack(stack.settings.data)
    assert control is not None
    return control.members


def write_everywhere(settings: StackSettings, name: str) -> None:
    """A record in Kafka, a value in ZooKeeper, a schema in the registry."""
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
    request = urllib.request.Request(  # noqa: S310 - our own registry
        f"{settings.registry_url}/subjects/{name}-value/versions",
        data=body,
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
        assert answer.status == 200


def assert_holds(settings: StackSettings, names: tuple[str, ...]) -> None:
    """A running stack has what `write_everywhere` wrote under these names, and no other subject."""
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    found = [store.get(f"/{name}") for name in names]
    store.close()
    assert [one.value if one else None for one in found] == [name.encode() for name in names]
    with urllib.request.urlopen(  # noqa: S310 - our own registry
        f"{settings.registry_url}/subjects", timeout=ANSWERS_WITHIN_S
    ) as answer:
        assert json.load(answer) == [f"{name}-value" for name in names]
    assert [read_record(settings, name) for name in names] == [name.encode() for name in names]


def read_record(settings: StackSettings, topic: str) -> bytes | None:
    """The first record of a topic, read by a consumer group that is new."""
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
    """The port on which Kafka talks to itself, which is kept in the data folder."""
    identity = json.loads((settings.data / "kafka" / "identity.json").read_text())
    return int(identity["controller_port"])


@contextmanager
def separate_process(settings: StackSettings) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that runs a stack, which is up; killed at the end if it is still there."""
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
    """The permissions of a user who owns nothing, also where tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_the_stack_answers(embedded_stack: EmbeddedStack) -> None:
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


def test_a_further_process_that_has_ended_is_forgotten(
    embedded_stack: EmbeddedStack, tmp_path: Path, wait_for: WaitFor
) -> None:
    """The control file lists it as long as it runs, and no longer."""
    command = (sys.executable, "-c", "input()")
    short = embedded_stack.add_child(ChildSpec("short", command, tmp_path / "out", tmp_path))
    names = [member.name for member in members_of(embedded_stack)]
    assert names == ["zookeeper", "kafka", "short"]
    wait_for(lambda: not short.running, "it has ended")
    embedded_stack.forget_ended()
    assert [member.name for member in members_of(embedded_stack)] == ["zookeeper", "kafka"]


def test_a_second_stack_in_the_same_folder_is_refused(embedded_stack: EmbeddedStack) -> None:
    """The error names the process that runs the first, which goes on."""
    second = stack_settings(embedded_stack.settings.data, embedded_stack.settings.cache)
    with pytest.raises(RefusedError, match=f"runs here already: process {os.getpid()}"):
        EmbeddedStack(second, start_registry).start()
    embedded_stack.check()


def test_a_taken_port_is_named_with_its_holder(
    embedded_stack: EmbeddedStack, tmp_path: Path
) -> None:
    """Kafka's port is held by the other stack's Java; the new folder is free again afterwards."""
    kafka = next(c for c in embedded_stack.children if c.spec.name == "kafka")
    free = stack_settings(tmp_path, embedded_stack.settings.cache)
    taken = replace(free, kafka_port=embedded_stack.settings.kafka_port)
    with pytest.raises(EnvironmentProblem, match=f"taken by java, process {kafka.pid}") as caught:
        EmbeddedStack(taken, start_registry).start()
    assert caught.value.place == "Kafka"
    assert read_control(tmp_path) is None


def test_a_full_cache_needs_no_fetch(first_life: FirstLife) -> None:
    """With every jar in the cache, no step of a first start is a fetch."""
    assert first_life.steps == (
        "starting Kafka and ZooKeeper",
        "starting the schema registry",
        "the stack is up",
    )


def test_a_stopped_stack_leaves_no_process(first_life: FirstLife) -> None:
    """Once `stop` returned, both servers have ended and the control file is gone."""
    assert first_life.left == ()
    assert first_life.control is None


def test_data_survive_a_restart_and_a_kill(
    first_life: FirstLife, tmp_path: Path, wait_for: WaitFor
) -> None:
    """Restart on other ports; kill -9 of that; a start at once: each has all data so far."""
    settings = first_life.copy(tmp_path)
    with restarted_beside_a_taken_controller_port(settings) as process:
        assert_holds(settings, NAMES[:1])
        write_everywhere(settings, NAMES[1])
        members = kill(settings, process)
        # No waiting here: the start waits for the end of the last one's servers.
        with EmbeddedStack(settings, start_registry) as stack:
            assert not living(members)
            assert_holds(settings, NAMES)
            assert_death_is_reported(stack, wait_for)
    wait_for(lambda: read_control(settings.data) is None, "the control file is gone")


@contextmanager
def restarted_beside_a_taken_controller_port(
    settings: StackSettings,
) -> Iterator["subprocess.Popen[bytes]"]:
    """A stack in a process of its own; Kafka has to choose another port for its controller.

    Only Kafka itself uses that port, so a program that took it meanwhile is no obstacle.
    """
    before = controller_port(settings)
    with (
        socket.create_server(("127.0.0.1", before)),
        separate_process(settings) as process,
    ):
        assert controller_port(settings) != before
        yield process


def kill(settings: StackSettings, process: "subprocess.Popen[bytes]") -> tuple[Member, ...]:
    """End a process that runs a stack with SIGKILL; returns the stack's other processes."""
    control = running_stack(settings.data)
    assert control is not None
    assert control.pid == process.pid
    process.send_signal(signal.SIGKILL)
    process.wait(ANSWERS_WITHIN_S)
    return control.members


def assert_death_is_reported(stack: EmbeddedStack, wait_for: WaitFor) -> None:
    """`check` names a server that was killed, and shows its last lines."""
    stack.check()
    zookeeper = stack.children[0]
    os.kill(zookeeper.pid, signal.SIGKILL)
    wait_for(lambda: not zookeeper.running, "ZooKeeper has ended")
    with pytest.raises(EnvironmentProblem, match="exit code 137; its last lines") as caught:
        stack.check()
    assert caught.value.place == "zookeeper"


def test_down_ends_a_stack_of_another_process(first_life: FirstLife, tmp_path: Path) -> None:
    """`stop_running` returns once all of it has ended."""
    settings = first_life.copy(tmp_path)
    with separate_process(settings):
        control = running_stack(settings.data)
        assert control is not None
        assert stop_running(settings.data) is Stopped.ENDED
        assert not living(control.members)


def test_a_server_that_fails_to_start_shows_its_last_lines(
    first_life: FirstLife, tmp_path: Path
) -> None:
    """Damaged data: the error contains the reason that Kafka gives.

    Nothing is left running, so that a second start fails for the same reason.
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
    """A data folder that cannot be written is reported before anything is started."""
    tmp_path.chmod(0o555)
    settings = stack_settings(tmp_path / "data", jar_cache)
    with as_ordinary_user(), pytest.raises(EnvironmentProblem, match="cannot be written") as caught:
        EmbeddedStack(settings, start_registry).start()
    assert "--data" in caught.value.hint


def test_data_of_another_cluster_are_not_served(first_life: FirstLife, tmp_path: Path) -> None:
    """Kafka's data must be those of the cluster whose id is kept in the folder."""
    settings = first_life.copy(tmp_path)
    identity = settings.data / "kafka" / "identity.json"
    stored = json.loads(identity.read_text())
    identity.write_text(json.dumps({**stored, "cluster_id": "another"}))
    with pytest.raises(EnvironmentProblem, match=f"cluster {stored['cluster_id']} .*not another"):
        EmbeddedStack(settings, start_registry).start()


def test_an_old_java_is_refused(tmp_path: Path, jar_cache: Path) -> None:
    """Nothing is started with a Java that is too old, and the folder is given back."""
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
