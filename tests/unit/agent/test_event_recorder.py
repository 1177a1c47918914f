"""The queue of a node's entries of the event log."""

import threading
from collections.abc import Callable

import pytest

from pipeline.agent import event_recorder
from pipeline.agent.event_recorder import ENTRIES_MAX, EventRecorder
from pipeline.errors import UnavailableError
from pipeline.event_log.event import EventKind, LoggedEvent
from pipeline.ids import Millis, NodeId
from pipeline.system_clock import SystemClock

NODE = NodeId("n1")
WITHIN_S = 10.0


def event(number: int) -> LoggedEvent:
    """An entry."""
    return LoggedEvent(Millis(number), "paused", "me")


class Writer:
    """Keeps entries; fails while it is told to."""

    def __init__(self) -> None:
        self.fails = False
        self.failed = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.entered = threading.Event()
        self.sent: list[LoggedEvent] = []
        self.delivered: list[LoggedEvent] = []

    def open(self) -> "Writer":
        """Itself."""
        return self

    def send(self, one: LoggedEvent) -> None:
        """Keep it."""
        self.entered.set()
        assert self.goes_on.wait(WITHIN_S)
        self.sent.append(one)

    def flush(self, within_s: float) -> None:
        """Deliver what was sent, or nothing."""
        assert within_s > 0
        sent, self.sent = self.sent, []
        if self.fails:
            self.failed.set()
            raise UnavailableError("Kafka does not answer")
        self.delivered += sent

    def close(self) -> None:
        """What was not delivered is gone."""
        self.sent.clear()


def recorder(open_writer: Callable[[], Writer]) -> EventRecorder:
    """One of a node."""
    return EventRecorder(NODE, open_writer, SystemClock())


def test_entries_are_written_in_their_order() -> None:
    """All of them, before it ends."""
    writer = Writer()
    found = recorder(writer.open)
    for number in range(50):
        found.put(event(number))
    assert found.end(WITHIN_S)
    assert writer.delivered == [event(number) for number in range(50)]


def test_entries_wait_while_kafka_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order, each of them once."""
    monkeypatch.setattr(event_recorder, "RETRY_S", 0.01)
    writer = Writer()
    writer.fails = True
    found = recorder(writer.open)
    found.put(event(1))
    assert writer.failed.wait(WITHIN_S)
    found.put(event(2))
    writer.fails = False
    done = threading.Event()
    while len(writer.delivered) < 2:
        assert not done.wait(0.005)
    assert found.end(WITHIN_S)
    assert writer.delivered == [event(1), event(2)]


def test_what_does_not_fit_is_counted() -> None:
    """The number is an entry of its own."""
    writer = Writer()
    writer.goes_on.clear()
    found = recorder(writer.open)
    found.put(event(0))
    assert writer.entered.wait(WITHIN_S)
    for number in range(ENTRIES_MAX + 3):
        found.put(event(number + 1))
    writer.goes_on.set()
    assert found.end(WITHIN_S)
    *written, lost = writer.delivered
    assert written == [event(number) for number in range(ENTRIES_MAX + 1)]
    assert (lost.kind, lost.facts) == (EventKind.ENTRIES_LOST, (("entries", "3"),))


def test_what_does_not_fit_is_counted_through_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often its entry could not be written."""
    monkeypatch.setattr(event_recorder, "RETRY_S", 0.01)
    writer = Writer()
    writer.fails = True
    found = recorder(writer.open)
    found.put(event(0))
    assert writer.failed.wait(WITHIN_S)
    for number in range(ENTRIES_MAX + 500):
        found.put(event(number + 1))
    for _ in range(3):
        writer.failed.clear()
        assert writer.failed.wait(WITHIN_S)
    writer.fails = False
    while not writer.delivered:
        assert not threading.Event().wait(0.005)
    assert found.end(WITHIN_S)
    *written, lost = writer.delivered
    counted = int(dict(lost.facts)["entries"])
    assert len(written) + counted == ENTRIES_MAX + 501
    assert written == [event(number) for number in range(ENTRIES_MAX)]


def test_a_mistake_of_ours_does_not_end_it() -> None:
    """Its entries are counted as lost."""
    writer = Writer()
    failing = [ValueError("a mistake")]

    def opened() -> Writer:
        if failing:
            writer.entered.set()
            raise failing.pop()
        return writer

    found = recorder(opened)
    found.put(event(1))
    assert writer.entered.wait(WITHIN_S)
    while failing:
        assert not threading.Event().wait(0.005)
    found.put(event(2))
    assert found.end(WITHIN_S)
    assert [one.kind for one in writer.delivered] in (["paused", "entries-lost"], ["entries-lost"])


def test_an_end_tries_once_more_and_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for the next try."""
    monkeypatch.setattr(event_recorder, "RETRY_S", 1_000.0)
    for fails in (True, False):
        writer = Writer()
        writer.fails = True
        found = recorder(writer.open)
        found.put(event(1))
        assert writer.failed.wait(WITHIN_S)
        writer.fails = fails
        assert found.end(WITHIN_S)
        assert writer.delivered == ([] if fails else [event(1)])
