from collections.abc import Iterator
from typing import Any

import pytest

from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.writers import MemoryTransactions
from brokers.records import NewTopicSpec
from pipeline.clock import Deadline
from pipeline.errors import RefusedError, RetryError
from pipeline.ids import TopicName, TransactionalId
from pipeline.lanes.result_headers import RESULT_ID
from pipeline.replay import write as module
from pipeline.replay.write import RECORDS_AT_ONCE, Result, Target, write
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create, records

TOPIC = TopicName("out.replay-1")


class Writer(MemoryTransactions):
    """Transactional writer that records its calls; a send may take time."""

    def __init__(self, kafka: MemoryKafka, *, slow_s: float = 0.0) -> None:
        super().__init__(kafka, TransactionalId("replay"))
        self._kafka = kafka
        self._slow_s = slow_s
        self.calls: list[str] = []

    def start(self, deadline: Deadline) -> None:
        """Fence every other writer."""
        self.calls.append("start")
        super().start(deadline)

    def begin(self) -> None:
        """Open a transaction."""
        self.calls.append("begin")
        super().begin()

    def send(self, topic: TopicName, key: bytes | None, value: bytes | None, **more: Any) -> None:
        """Add a record; it may take time."""
        super().send(topic, key, value, **more)
        self._kafka.clock.sleep(self._slow_s)

    def commit(self, deadline: Deadline) -> None:
        """Make all records visible."""
        self.calls.append("commit")
        super().commit(deadline)

    def abort(self, deadline: Deadline) -> None:
        """Discard all records."""
        self.calls.append("abort")
        super().abort(deadline)


def visible(kafka: MemoryKafka, topic: TopicName = TOPIC) -> list[Result]:
    """The results that are visible to readers."""
    return [
        (r.key, r.value or b"", r.timestamp_ms, r.partition, dict(r.headers).get(RESULT_ID))
        for r in records(kafka, topic)
    ]


def results(count: int) -> Iterator[Result]:
    """A number of results."""
    return ((b"k", str(n).encode(), n, -1, None) for n in range(count))


def target(counts: list[int] | None = None) -> Target:
    """A topic that does not exist yet."""
    report = (counts if counts is not None else []).append
    return Target(NewTopicSpec(TOPIC, 1, 1), lambda: None, report)


def test_all_results_are_one_transaction() -> None:
    """Earlier runs are fenced before the topic is created; each portion reports its progress."""
    clock, counts = TwinClock(), list[int]()
    kafka = MemoryKafka(clock)
    writer = Writer(kafka)
    count = 2 * RECORDS_AT_ONCE + 1
    assert write(results(count), target(counts), writer, kafka, clock) == count
    assert writer.calls == ["start", "begin", "commit"]
    assert [value for _, value, *_ in visible(kafka)] == [str(n).encode() for n in range(count)]
    assert counts == [RECORDS_AT_ONCE, 2 * RECORDS_AT_ONCE, count]
    assert TOPIC in kafka.topics


def test_results_are_written_with_their_ids() -> None:
    """So that a copy can be compared by id."""
    clock = TwinClock()
    kafka = MemoryKafka(clock)
    writer = Writer(kafka)
    made = [(b"k", b"v", 1, 0, b"id"), (b"k", b"w", 2, 0, None)]
    assert write(made, target(), writer, kafka, clock) == len(made)
    assert visible(kafka) == made


def test_without_results_there_is_no_topic() -> None:
    """So a replay topic without visible records is never complete."""
    clock = TwinClock()
    kafka = MemoryKafka(clock)
    writer = Writer(kafka)
    assert write(iter(()), target(), writer, kafka, clock) == 0
    assert (writer.calls, kafka.topics) == ([], {})


def test_a_failed_run_leaves_nothing() -> None:
    """Its transaction is aborted, and the topic that it created is deleted."""

    def failing() -> Iterator[Result]:
        yield from results(3)
        raise RetryError("Spark failed")

    clock = TwinClock()
    kafka = MemoryKafka(clock)
    writer = Writer(kafka)
    with pytest.raises(RetryError):
        write(failing(), target(), writer, kafka, clock)
    assert writer.calls == ["start", "begin", "abort"]
    assert kafka.topics == {}


def test_a_failed_run_keeps_a_topic_that_existed() -> None:
    """Only a topic that the run created is deleted."""
    clock = TwinClock()
    kafka = MemoryKafka(clock)
    create(kafka, TOPIC)
    writer = Writer(kafka, slow_s=module.WRITE_WITHIN_S)
    with pytest.raises(RefusedError, match="a transaction cannot last longer"):
        write(results(2), target(), writer, kafka, clock)
    assert "abort" in writer.calls
    assert visible(kafka) == []


def test_a_topic_that_was_filled_meanwhile_is_refused() -> None:
    """It is checked again when every other run is fenced."""

    def full() -> None:
        raise RefusedError("it holds records")

    clock = TwinClock()
    kafka = MemoryKafka(clock)
    writer = Writer(kafka)
    full_target = Target(NewTopicSpec(TOPIC, 1, 1), full, lambda _: None)
    with pytest.raises(RefusedError):
        write(results(1), full_target, writer, kafka, clock)
    assert writer.calls == ["start"]
    assert kafka.topics == {}


def test_writing_and_committing_end_before_the_transaction_timeout() -> None:
    """Otherwise the broker would abort it."""
    assert module.WRITE_WITHIN_S + module.COMMIT_WITHIN_S < module.TRANSACTION_S
