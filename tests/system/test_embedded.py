"""The embedded stack on real Kafka and ZooKeeper."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from brokers.embedded.control import (
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
from brokers.ports import free_port
from brokers.records import NewTopicSpec
from brokers.versioned_store import Create
from brokers.zookeeper import ZooKeeperStore
from pipeline.errors import EnvironmentProblem, RefusedError
from pipeline.ids import TopicName
from schemas.embedded import start_registry
from tests.conftest import WaitFor, stack_settings

pytestmark = pytest.mark.system

ANSWERS_WITHIN_S = 10.0
TOPIC = TopicName("kept")
NOBODY = 65534

RUN_A_STACK = textwrap.dedent("""
    import sys, time
    from pathlib import Path
    from brokers.embedded.stack import EmbeddedStack, StackSettings
    from schemas.embedded import start_registry

    data, cache, *ports = sys.argv[1:]
    with EmbeddedStack(StackSettings(Path(data), Path(cache), *map(int, ports)), start_registry):
        print("up", flush=True)
        time.sleep(120)
    """)
"""A program that runs a stack, to be killed."""


def alive(pid: int) -> bool:
    """Whether there is such a process."""
    return process_born(pid) is not None


def write_everywhere(settings: StackSettings) -> None:
    """A record in Kafka, a value in ZooKeeper, a schema in the registry."""
    admin = KafkaAdmin(settings.kafka_bootstrap_servers, ANSWERS_WITHIN_S)
    admin.create_topics((NewTopicSpec(TOPIC, partitions=1, replication=1),))
    producer = Producer({"bootstrap.servers": settings.kafka_bootstrap_servers})
    producer.produce(TOPIC, b"value")
    assert producer.flush(ANSWERS_WITHIN_S) == 0
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    store.apply((Create("/kept", b"value"),))
    store.close()
    body = json.dumps({"schema": '"string"'}).encode()
    request = urllib.request.Request(  # noqa: S310 - our own registry
        f"{settings.registry_url}/subjects/kept-value/versions",
        data=body,
        headers={"Content-Type": "application/vnd.schemaregistry.v1+json"},
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
        assert answer.status == 200


def read_everywhere(settings: StackSettings) -> tuple[bytes | None, bytes | None, list[str]]:
    """What `write_everywhere` wrote: record, value, subjects."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings.kafka_bootstrap_servers,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([TOPIC])
    message = consumer.poll(ANSWERS_WITHIN_S)
    consumer.close()
    record = message.value() if message is not None else None
    store = ZooKeeperStore.connect(settings.zookeeper_connect, ANSWERS_WITHIN_S)
    found = store.get("/kept")
    store.close()
    with urllib.request.urlopen(  # noqa: S310 - our own registry
        f"{settings.registry_url}/subjects", timeout=ANSWERS_WITHIN_S
    ) as answer:
        subjects: list[str] = json.load(answer)
    assert isinstance(record, bytes | None)
    return record, found.value if found else None, subjects


@contextmanager
def separate_process(settings: StackSettings) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that runs a stack; killed at the end if it is still there."""
    ports = (settings.kafka_port, settings.zookeeper_port, settings.registry_port)
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", RUN_A_STACK),
            *(str(settings.data), str(settings.cache), *map(str, ports)),
        ],
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
    """The permissions of somebody who owns nothing, also where tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def test_the_stack_answers(embedded_stack: EmbeddedStack) -> None:
    """Once `start` returned, all three servers answer, and the control file tells where."""
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
    """As long as it runs others are told of it, and no longer."""
    command = (sys.executable, "-c", "input()")
    short = embedded_stack.add_child(ChildSpec("short", command, tmp_path / "out", tmp_path))
    names = [member.name for member in told(embedded_stack)]
    assert names == ["zookeeper", "kafka", "short"]
    wait_for(lambda: not short.running, "it has ended")
    embedded_stack.forget_ended()
    assert [member.name for member in told(embedded_stack)] == ["zookeeper", "kafka"]


def told(stack: EmbeddedStack) -> tuple[Member, ...]:
    """The processes that others are told of."""
    control = running_stack(stack.settings.data)
    assert control is not None
    return control.members


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


def test_data_survive_a_restart(tmp_path: Path, jar_cache: Path) -> None:
    """A stopped stack leaves no process; started again, on other ports, it has all its data."""
    first = stack_settings(tmp_path / "dåta", jar_cache)
    with EmbeddedStack(first, start_registry) as stack:
        write_everywhere(first)
        pids = [child.pid for child in stack.children]
    assert not [pid for pid in pids if alive(pid)]
    assert running_stack(first.data) is None
    second = stack_settings(first.data, jar_cache)
    with EmbeddedStack(second, start_registry):
        assert read_everywhere(second) == (b"value", b"value", ["kept-value"])


def test_a_taken_controller_port_is_changed(tmp_path: Path, jar_cache: Path) -> None:
    """The controller's port is nobody's business: taken meanwhile, it becomes another one."""
    settings = stack_settings(tmp_path, jar_cache)
    with EmbeddedStack(settings, start_registry):
        write_everywhere(settings)
    identity = json.loads((tmp_path / "kafka" / "identity.json").read_text())
    with (
        socket.create_server(("127.0.0.1", identity["controller_port"])),
        EmbeddedStack(settings, start_registry),
    ):
        assert read_everywhere(settings)[0] == b"value"


def test_kill_9_leaves_nothing_running(tmp_path: Path, jar_cache: Path, wait_for: WaitFor) -> None:
    """The servers end with the process that started them, and the folder is usable at once."""
    settings = stack_settings(tmp_path, jar_cache)
    with separate_process(settings) as process:
        write_everywhere(settings)
        control = running_stack(tmp_path)
        assert control is not None
        assert control.pid == process.pid
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        # No waiting here: the start waits for what is left of the last one.
        with EmbeddedStack(settings, start_registry):
            assert not [member for member in control.members if alive(member.pid)]
            assert read_everywhere(settings) == (b"value", b"value", ["kept-value"])
    wait_for(lambda: read_control(tmp_path) is None, "the control file is gone")


def test_down_ends_a_stack_of_another_process(tmp_path: Path, jar_cache: Path) -> None:
    """`stop_running` returns once all of it has ended."""
    with separate_process(stack_settings(tmp_path, jar_cache)):
        control = running_stack(tmp_path)
        assert control is not None
        assert stop_running(tmp_path, 30.0) is Stopped.ENDED
        assert not [member for member in control.members if alive(member.pid)]


def test_a_server_that_dies_is_reported(tmp_path: Path, jar_cache: Path, wait_for: WaitFor) -> None:
    """`check` names the server and shows its last lines."""
    with EmbeddedStack(stack_settings(tmp_path, jar_cache), start_registry) as stack:
        zookeeper = stack.children[0]
        os.kill(zookeeper.pid, signal.SIGKILL)
        wait_for(lambda: not zookeeper.running, "ZooKeeper is seen to have ended")
        with pytest.raises(EnvironmentProblem, match="exit code 137; its last lines") as caught:
            stack.check()
        assert caught.value.place == "zookeeper"


def test_a_server_that_fails_to_start_shows_its_last_lines(tmp_path: Path, jar_cache: Path) -> None:
    """Damaged data: the reason that Kafka gives is in the error, and nothing is left running."""
    settings = stack_settings(tmp_path, jar_cache)
    with EmbeddedStack(settings, start_registry):
        pass
    meta = tmp_path / "kafka" / "data" / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", "node.id=7"))
    with pytest.raises(EnvironmentProblem, match=r"meta\.properties") as caught:
        EmbeddedStack(settings, start_registry).start()
    assert caught.value.place == "kafka"
    assert str(tmp_path / "logs" / "kafka.log") in caught.value.hint
    with pytest.raises(EnvironmentProblem, match=r"meta\.properties"):
        EmbeddedStack(settings, start_registry).start()


def test_a_read_only_folder_is_refused(tmp_path: Path, jar_cache: Path) -> None:
    """A data folder that cannot be written is told before anything is started."""
    tmp_path.chmod(0o555)
    settings = stack_settings(tmp_path / "data", jar_cache)
    with as_ordinary_user(), pytest.raises(EnvironmentProblem, match="cannot be written") as caught:
        EmbeddedStack(settings, start_registry).start()
    assert "--data" in caught.value.hint


def test_data_of_another_cluster_are_not_served(tmp_path: Path, jar_cache: Path) -> None:
    """What lies in the folder must be the cluster that the folder is known to hold."""
    settings = stack_settings(tmp_path, jar_cache)
    with EmbeddedStack(settings, start_registry):
        pass
    identity = tmp_path / "kafka" / "identity.json"
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


def test_a_full_cache_needs_no_fetch(tmp_path: Path, jar_cache: Path) -> None:
    """With every jar in the cache a start tells of no fetching."""
    assert jar_folder(jar_cache).is_dir()
    steps: list[Step] = []
    with EmbeddedStack(stack_settings(tmp_path, jar_cache), start_registry, steps.append):
        pass
    assert [step.what for step in steps] == [
        "starting Kafka and ZooKeeper",
        "starting the schema registry",
        "the stack is up",
    ]
    assert free_port() > 0
