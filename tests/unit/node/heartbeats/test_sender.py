"""The sender of a node's heartbeats: reports, and children that end."""

import logging
import threading
from collections.abc import Callable, Iterator, Sequence

import pytest

from brokers.kafka.servers import KafkaServers
from pipeline.heartbeats.steps import StepAge
from pipeline.ids import Millis, NodeId, ParticipantId
from pipeline.node.heartbeats import sender
from pipeline.node.heartbeats.messages import Orders
from pipeline.node.heartbeats.sender import HeartbeatSender
from tests.conftest import WaitFor

ORDERS = Orders(KafkaServers("broker:1"), ParticipantId("ada"), NodeId("n1"), Millis(7))
STEPS = (StepAge("tolls.moving", "wait", 70),)


class Child:
    """A process that ends when it is told to."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.reports: list[int] = []
        self.hangs = False
        self.output: list[str] = []
        self.closed = threading.Event()
        self.killed = threading.Event()

    def report(self, age_ms: int, steps: Sequence[StepAge]) -> bool:
        """Keep it, unless it hangs."""
        assert steps == STEPS
        if self.hangs:
            return False
        self.reports.append(age_ms)
        return True

    def lines(self) -> tuple[str, ...]:
        """Its output, once."""
        output, self.output = self.output, []
        return tuple(output)

    def close(self, within_s: float) -> None:
        """End."""
        assert within_s > 0
        self.code = 0 if self.code is None else self.code
        self.closed.set()

    def kill(self) -> None:
        """End without a last heartbeat."""
        self.code = -9 if self.code is None else self.code
        self.killed.set()


class World:
    """A sender and its children, in their order."""

    def __init__(self) -> None:
        self.children: list[Child] = []
        self.refused = 0
        self.fails = 0
        self.sender = HeartbeatSender(ORDERS, self.age_ms, lambda: STEPS, self.start)

    def age_ms(self) -> int:
        """Of the last decision; fails sometimes."""
        if self.fails:
            self.fails -= 1
            raise ValueError("no age")
        return 42

    def start(self, orders: Orders) -> Child:
        """A child; some cannot be started."""
        assert orders == ORDERS
        if self.refused:
            self.refused -= 1
            raise OSError(11, "no more processes")
        self.children.append(Child())
        return self.children[-1]

    def count(self, number: int) -> Callable[[], bool]:
        """Whether so many children were started, and the last one got a report."""
        return lambda: len(self.children) >= number and bool(self.children[-1].reports)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """A sender in a hurry."""
    monkeypatch.setattr(sender, "REPORT_S", 0.001)
    monkeypatch.setattr(sender, "AGAIN_FIRST_S", 0.001)
    monkeypatch.setattr(sender, "AGAIN_MOST_S", 0.004)
    found = World()
    yield found
    found.sender.close()


def test_the_age_of_the_last_decision_is_reported(world: World, wait_for: WaitFor) -> None:
    """Until the sender is closed; then the child is."""
    wait_for(world.count(1), "a report")
    world.sender.close()
    (child,) = world.children
    assert set(child.reports) == {42}
    assert child.closed.is_set()
    assert not child.killed.is_set()


def test_a_child_that_has_ended_is_started_again(
    world: World, wait_for: WaitFor, caplog: pytest.LogCaptureFixture
) -> None:
    """Again and again; only the first end of a series is a warning."""
    for number in range(1, 4):
        wait_for(world.count(number), "a child")
        world.children[-1].code = -9
    wait_for(world.count(4), "the fourth child")
    world.sender.close()
    assert [child.killed.is_set() for child in world.children] == [True, True, True, False]
    assert [child.closed.is_set() for child in world.children] == [False, False, False, True]
    (warning,) = [one for one in caplog.records if one.levelno == logging.WARNING]
    assert "exit code -9" in warning.getMessage()


def test_a_child_that_hangs_is_started_again(
    world: World, wait_for: WaitFor, caplog: pytest.LogCaptureFixture
) -> None:
    """One that reads no report any more sends no heartbeat either."""
    with caplog.at_level(logging.WARNING):
        wait_for(world.count(1), "the first child")
        world.children[0].hangs = True
        wait_for(world.count(2), "another child")
    assert world.children[0].killed.is_set()
    assert not world.children[0].closed.is_set()
    assert "started again: it hangs" in caplog.text


def test_a_child_that_cannot_be_started_is_tried_again(
    world: World, wait_for: WaitFor, caplog: pytest.LogCaptureFixture
) -> None:
    """The node goes on meanwhile."""
    wait_for(world.count(1), "a child")
    world.refused = 2
    world.children[-1].code = 1
    wait_for(world.count(2), "another child")
    assert world.refused == 0
    assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 1


def test_an_error_of_the_sender_is_not_the_end_of_the_node(
    world: World, wait_for: WaitFor, caplog: pytest.LogCaptureFixture
) -> None:
    """The child is killed, so that it sends no last heartbeat, and another one goes on."""
    wait_for(world.count(1), "a child")
    world.fails = 1
    wait_for(world.count(2), "another child")
    assert world.children[0].killed.is_set()
    assert not world.children[0].closed.is_set()
    assert "ValueError: no age" in caplog.text


def test_what_a_child_reports_is_logged(
    world: World, wait_for: WaitFor, caplog: pytest.LogCaptureFixture
) -> None:
    """An outage and its end."""
    caplog.set_level(logging.INFO)
    wait_for(world.count(1), "a child")
    world.children[-1].output = ["Kafka does not answer", ""]
    wait_for(lambda: len(caplog.messages) == 2, "both lines")
    assert caplog.messages == [
        "heartbeats are not sent: Kafka does not answer",
        "heartbeats are sent again",
    ]
