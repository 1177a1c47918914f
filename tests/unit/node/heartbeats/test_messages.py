"""Messages between a node and the process that sends its heartbeats, through a real pipe."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from select import PIPE_BUF

import pytest

from brokers.access import Login, PemFile, Tls
from brokers.kafka.servers import KafkaServers, Sasl
from pipeline.heartbeats.steps import BYTES_MAX, StepAge
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.node.heartbeats.messages import Orders, Parent, Reports, encode_orders, encode_report
from pipeline.secrets import Secret
from tests.unit.deploy.twins import TwinClock

SERVERS = KafkaServers(
    "broker:1",
    Sasl("PLAIN", Login("ada", Secret("of ada"))),
    Tls(PemFile(Path("ca.pem"), "certificates")),
)
STEPS = (StepAge("tolls.moving", "batch", 70),)
ORDERS = Orders(SERVERS, ParticipantId("ada"), NodeId("n1"), Millis(7))


@dataclass
class Pipe:
    """Both ends, and the child's view of the parent."""

    read: int
    write: int
    clock: TwinClock

    def __post_init__(self) -> None:
        self.parent = Parent(self.read, self.clock)

    def put(self, content: bytes) -> None:
        """Write as the parent does."""
        os.write(self.write, content)

    def end(self) -> None:
        """The parent ends."""
        os.close(self.write)
        self.write = -1


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    """A new one."""
    read, write = os.pipe()
    found = Pipe(read, write, TwinClock())
    yield found
    os.close(read)
    if found.write >= 0:
        os.close(found.write)


def test_orders_contain_what_a_connection_needs(pipe: Pipe) -> None:
    """With secrets."""
    pipe.put(encode_orders(ORDERS))
    assert pipe.parent.orders() == ORDERS
    assert not pipe.parent.ended


@pytest.mark.parametrize("length", [0, 3, 4, 10])
def test_a_parent_may_end_before_its_orders(pipe: Pipe, length: int) -> None:
    """Wherever the message is cut."""
    pipe.put(encode_orders(ORDERS)[:length])
    pipe.end()
    assert pipe.parent.orders() is None
    assert pipe.parent.ended


def test_the_age_grows_between_reports(pipe: Pipe) -> None:
    """The last report counts, from the moment in which it was read."""
    pipe.clock.sleep(1.0)
    assert pipe.parent.agent_ms() == 1_000
    pipe.put(encode_report(5_000, ()) + encode_report(40, ()))
    pipe.parent.wait(0.0)
    assert pipe.parent.agent_ms() == 40
    pipe.clock.sleep(0.1)
    assert pipe.parent.agent_ms() == 140


def test_steps_grow_older_between_reports(pipe: Pipe) -> None:
    """As the age of the last decision does."""
    pipe.put(encode_report(0, STEPS))
    pipe.parent.wait(0.0)
    pipe.clock.sleep(0.5)
    assert pipe.parent.steps() == (StepAge("tolls.moving", "batch", 570),)


def test_reports_that_are_not_read_are_dropped(pipe: Pipe) -> None:
    """One of which a part is in the pipe is completed: the next ones are whole again."""
    os.set_blocking(pipe.write, False)
    many = tuple(StepAge(f"tolls.f{number}", "wait", 1) for number in range(400))
    assert PIPE_BUF < len(encode_report(1, many)) < BYTES_MAX
    reports = Reports(pipe.write)
    for number in range(20):
        reports.put(number, many)
    pipe.parent.wait(0.0)
    last = pipe.parent.agent_ms()
    assert 0 < last < 19
    reports.put(30, many)
    pipe.parent.wait(0.0)
    assert pipe.parent.agent_ms() == last + 1
    reports.put(40, many)
    pipe.parent.wait(0.0)
    assert (pipe.parent.agent_ms(), pipe.parent.steps()) == (40, many)


@pytest.mark.parametrize("cut", [3, 12, 20])
def test_a_report_may_come_in_parts(pipe: Pipe, cut: int) -> None:
    """As pipes may deliver it."""
    report = encode_report(40, STEPS)
    pipe.put(encode_report(30, ()) + report[:cut])
    pipe.parent.wait(0.0)
    assert (pipe.parent.agent_ms(), pipe.parent.steps()) == (30, ())
    pipe.put(report[cut:])
    pipe.parent.wait(0.0)
    assert (pipe.parent.agent_ms(), pipe.parent.steps()) == (40, STEPS)


def test_the_end_of_the_pipe_is_that_of_the_parent(pipe: Pipe) -> None:
    """What it wrote before is read; the wait is over at once."""
    pipe.put(encode_report(30, ()))
    pipe.end()
    pipe.parent.wait(60.0)
    assert pipe.parent.ended
    assert pipe.parent.agent_ms() == 30
