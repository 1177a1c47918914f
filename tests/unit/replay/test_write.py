from collections.abc import Iterator
from typing import Any

import pytest

from brokers.records import NewTopicSpec
from pipeline.clock import Deadline
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import TopicName
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.replay import write as module
from pipeline.replay.write import RECORDS_AT_ONCE, Result, Target, write
from tests.unit.deploy.twins import TwinClock, TwinKafka

TOPIC = TopicName("out.replay-1")


class TwinWriter:
    """Remembers what was called; what was sent counts once it is committed."""

    def __init__(self, clock: TwinClock, *, slow_s: float = 0.0, topic: TopicName = TOPIC) -> None:
        self._clock = clock
        self._topic = topic
        self._slow_s = slow_s
        self.calls: list[str] = []
        self.open: list[Result] = []
        self.visible: list[Result] = []

    def start(self, _deadline: Deadline) -> None:
        """Nobody else writes."""
        self.calls.append("start")

    def begin(self) -> None:
        """Open a transaction."""
        self.calls.append("begin")

    def send(self, topic: TopicName, key: bytes | None, value: bytes | None, **more: Any) -> None:
        """Take it; it may last."""
        assert topic == self._topic
        result = dict(more["headers"]).get(RESULT_ID)
        self.open.append((key, value or b"", more["timestamp_ms"], more["partition"], result))
        self._clock.sleep(self._slow_s)

    def commit(self, _deadline: Deadline) -> None:
        """All of it is seen."""
        self.calls.append("commit")
        self.visible = self.open

    def abort(self, _deadline: Deadline) -> None:
        """None of it is ever seen."""
        self.calls.append("abort")


def records(count: int) -> Iterator[Result]:
    """So many results."""
    return ((b"k", str(n).encode(), n, -1, None) for n in range(count))


def target(told: list[int] | None = None) -> Target:
    """A topic that is not there yet."""
    tell = (told if told is not None else []).append
    return Target(NewTopicSpec(TOPIC, 1, 1), lambda: None, tell)


def test_everything_is_one_transaction() -> None:
    """Earlier runs are ended before the topic is made; portions only tell how far it is."""
    clock, kafka, told = TwinClock(), TwinKafka(), list[int]()
    writer = TwinWriter(clock)
    count = 2 * RECORDS_AT_ONCE + 1
    assert write(records(count), target(told), writer, kafka, clock) == count
    assert writer.calls == ["start", "begin", "commit"]
    assert [value for _, value, *_ in writer.visible] == [str(n).encode() for n in range(count)]
    assert told == [RECORDS_AT_ONCE, 2 * RECORDS_AT_ONCE, count]
    assert TOPIC in kafka.topics


def test_ids_go_with_the_results() -> None:
    """So that a copy can be compared by them."""
    clock = TwinClock()
    writer = TwinWriter(clock)
    made = [(b"k", b"v", 1, 0, b"id"), (b"k", b"w", 2, 0, None)]
    assert write(made, target(), writer, TwinKafka(), clock) == len(made)
    assert writer.visible == made


def test_without_results_there_is_no_topic() -> None:
    """So a topic of a replay that shows nothing is never a complete one."""
    clock, kafka = TwinClock(), TwinKafka()
    writer = TwinWriter(clock)
    assert write(iter(()), target(), writer, kafka, clock) == 0
    assert (writer.calls, kafka.topics) == ([], {})


def test_what_fails_midway_leaves_nothing() -> None:
    """The transaction is given up, and the topic that was made for it goes."""

    def failing() -> Iterator[Result]:
        yield from records(3)
        raise RetryError("Spark failed")

    clock, kafka = TwinClock(), TwinKafka()
    writer = TwinWriter(clock)
    with pytest.raises(RetryError):
        write(failing(), target(), writer, kafka, clock)
    assert writer.calls == ["start", "begin", "abort"]
    assert (writer.visible, kafka.topics) == ([], {})


def test_a_topic_that_was_there_stays_when_it_fails() -> None:
    """Only what the run made is removed."""
    clock, kafka = TwinClock(), TwinKafka()
    kafka.add(TOPIC, 1)
    writer = TwinWriter(clock, slow_s=module.WRITE_WITHIN_S)
    with pytest.raises(RefusedError, match="a transaction cannot last longer"):
        write(records(2), target(), writer, kafka, clock)
    assert "abort" in writer.calls
    assert TOPIC in kafka.topics


def test_a_topic_that_somebody_filled_meanwhile_is_left_alone() -> None:
    """It is looked at again once no other run can write."""

    def full() -> None:
        raise RefusedError("it holds records")

    clock, kafka = TwinClock(), TwinKafka()
    writer = TwinWriter(clock)
    full_target = Target(NewTopicSpec(TOPIC, 1, 1), full, lambda _: None)
    with pytest.raises(RefusedError):
        write(records(1), full_target, writer, kafka, clock)
    assert writer.calls == ["start"]
    assert kafka.topics == {}


def test_writing_ends_within_the_life_of_a_transaction() -> None:
    """With time to commit it, too."""
    assert module.WRITE_WITHIN_S + module.COMMIT_WITHIN_S < module.TRANSACTION_S
