"""Heartbeats of real processes through a real broker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from brokers.children import child_processes
from brokers.embedded.stack import EmbeddedStack
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.servers import KafkaServers
from brokers.kafka_interface import BEGINNING, Isolation, RecordReader
from pipeline.heartbeats.codec import decode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.topic import topic_spec
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.names import heartbeats_topic
from pipeline.node.heartbeats.messages import Orders
from pipeline.node.heartbeats.sender import ChildProcess, HeartbeatSender
from tests.conftest import WaitFor

pytestmark = pytest.mark.system
NODE = NodeId("n1")
LIFE = Millis(7)

PARENT = f"""
import sys, threading
from {KafkaServers.__module__} import KafkaServers
from {Orders.__module__} import Orders
from {HeartbeatSender.__module__} import HeartbeatSender
HeartbeatSender(Orders(KafkaServers(sys.argv[1]), sys.argv[2], "{NODE}", {LIFE}), lambda: 3, tuple)
print("up", flush=True)
threading.Event().wait()
"""
"""A node that does nothing else."""


class Heard:
    """The heartbeats of a participant's nodes."""

    def __init__(self, reader: RecordReader, participant: ParticipantId) -> None:
        self._reader = reader
        self.all: list[Heartbeat] = []
        reader.assign({heartbeats_topic(participant): {0: BEGINNING}})

    def come(self) -> list[Heartbeat]:
        """All so far."""
        self.all += [decode(record.value, "") for record in self._reader.poll(0.2)]
        return self.all

    def ended(self) -> bool:
        """Whether the last one was a last one."""
        return bool(self.come()) and self.all[-1].ended

    def newer(self) -> bool:
        """Whether another process sends than the first one."""
        return any(b.number <= a.number for a, b in zip(self.all, self.come()[1:], strict=False))


def orders(stack: EmbeddedStack, participant: ParticipantId) -> Orders:
    """Of a node."""
    servers = KafkaServers(stack.settings.kafka_bootstrap_servers)
    return Orders(servers, participant, NODE, LIFE)


@contextmanager
def heard(stack: EmbeddedStack, participant: ParticipantId) -> Iterator[Heard]:
    """Reads the heartbeats of a participant from the first one on; the topic exists by then."""
    brokers = stack.settings.kafka_bootstrap_servers
    KafkaAdmin(brokers, 20.0).create_topics((topic_spec(participant),))
    with RemoteKafka(brokers).reader(10.0, isolation=Isolation.UNCOMMITTED) as reader:
        yield Heard(reader, participant)


def test_an_orderly_end_is_a_last_heartbeat(
    embedded_stack: EmbeddedStack, wait_for: WaitFor
) -> None:
    """Of the same life; numbers and times count up."""
    me = ParticipantId("beats")
    with heard(embedded_stack, me) as log:
        sender = HeartbeatSender(orders(embedded_stack, me), lambda: 3, tuple)
        wait_for(lambda: len(log.come()) > 5, "heartbeats")
        sender.close()
        wait_for(log.ended, "the last heartbeat")
        assert [one.number for one in log.all] == list(range(1, len(log.all) + 1))
        assert [one.ended for one in log.all] == [False] * (len(log.all) - 1) + [True]
        assert {(one.node, one.life) for one in log.all} == {(NODE, LIFE)}
        times = [one.sent_ms for one in log.all]
        assert times == sorted(times)
        assert times[-1] <= time.monotonic() * 1_000  # the clock of this machine


def test_a_killed_node_has_a_last_heartbeat(
    embedded_stack: EmbeddedStack, wait_for: WaitFor
) -> None:
    """Its child sends it, and ends."""
    me = ParticipantId("killed")
    with heard(embedded_stack, me) as log:
        address = embedded_stack.settings.kafka_bootstrap_servers
        command = [sys.executable, "-c", PARENT, address, me]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            wait_for(lambda: len(log.come()) > 2, "heartbeats")
            (child,) = child_processes(parent.pid)
            os.kill(parent.pid, signal.SIGKILL)
            parent.wait()
        wait_for(log.ended, "the last heartbeat")
        wait_for(lambda: not runs(child), "the end of the child")


def test_a_killed_child_is_started_again(embedded_stack: EmbeddedStack, wait_for: WaitFor) -> None:
    """Without a last heartbeat: the node goes on. A signal that a child may ignore does nothing."""
    me = ParticipantId("again")
    started: list[ChildProcess] = []

    def start(given: Orders) -> ChildProcess:
        started.append(ChildProcess(given))
        return started[-1]

    with heard(embedded_stack, me) as log:
        sender = HeartbeatSender(orders(embedded_stack, me), lambda: 3, tuple, start)
        wait_for(lambda: len(log.come()) > 2, "heartbeats")
        os.kill(started[0].pid, signal.SIGTERM)
        count = len(log.all)
        wait_for(lambda: len(log.come()) > count + 5, "heartbeats after SIGTERM")
        assert len(started) == 1
        os.kill(started[0].pid, signal.SIGKILL)
        wait_for(log.newer, "heartbeats of the second child")
        assert not any(one.ended for one in log.all)
        sender.close()
        assert [one.code for one in started] == [-signal.SIGKILL, 0]


def test_a_deleted_topic_is_created_again(embedded_stack: EmbeddedStack, wait_for: WaitFor) -> None:
    """Heartbeats go on in it."""
    me = ParticipantId("deleted")
    topic = heartbeats_topic(me)
    admin = KafkaAdmin(embedded_stack.settings.kafka_bootstrap_servers, 20.0)
    sender = HeartbeatSender(orders(embedded_stack, me), lambda: 3, tuple)
    wait_for(lambda: topic in admin.describe((topic,)), "the topic")
    first = admin.describe((topic,))[topic].topic_id
    admin.delete_topics((topic,))

    def is_another() -> bool:
        found = admin.describe((topic,))
        return topic in found and found[topic].topic_id != first

    wait_for(is_another, "another topic")
    with heard(embedded_stack, me) as log:
        wait_for(lambda: len(log.come()) > 2, "heartbeats in it")
    sender.close()


def runs(pid: int) -> bool:
    """Whether a process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
