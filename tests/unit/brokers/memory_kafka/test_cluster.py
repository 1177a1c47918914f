"""Kafka in memory beyond the conformance tests: misuse, waits, threads."""

import threading

import pytest

from brokers.kafka_interface import BEGINNING, Isolation, NotNowError
from brokers.memory_kafka.cluster import DECIDED_WITHIN_S, MemoryKafka
from brokers.memory_kafka.writers import MemoryTransactions
from brokers.records import NewTopicSpec
from pipeline.clock import Deadline
from pipeline.errors import BrokenInvariantError, FencedError
from pipeline.ids import Offset, TopicName, TransactionalId
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import create, records, with_topics

TOPIC = TopicName("topic")
ID = TransactionalId("writer")


def started(kafka: MemoryKafka) -> MemoryTransactions:
    """A writer that has begun."""
    writer = kafka.transactions(ID)
    writer.start(deadline(kafka))
    return writer


def deadline(kafka: MemoryKafka) -> Deadline:
    """The deadline of one call."""
    return Deadline.after(kafka.clock, 1.0, "a test")


def test_calls_out_of_order_are_errors_of_the_caller() -> None:
    """A transaction within a transaction, a record outside of one, a closed reader."""
    kafka = with_topics([TOPIC])
    writer = started(kafka)
    with pytest.raises(BrokenInvariantError, match="no transaction is open"):
        writer.send(TOPIC, None, b"", timestamp_ms=1)
    writer.begin()
    with pytest.raises(BrokenInvariantError, match="has not ended"):
        writer.begin()
    with kafka.reader(1.0) as reader:
        reader.assign({TOPIC: {0: BEGINNING}})
    with pytest.raises(BrokenInvariantError, match="closed"):
        reader.poll(0.1)


def test_a_writer_that_was_not_started_is_refused() -> None:
    """As if another one had started."""
    with pytest.raises(FencedError):
        with_topics([TOPIC]).transactions(ID).begin()


def test_an_empty_poll_sleeps_once_on_the_given_clock() -> None:
    """Until the end of its timeout; records that arrived by then are returned."""

    class Later(TwinClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            kafka.append(TOPIC, None, b"later")

    clock = TwinClock()
    kafka = with_topics([TOPIC], clock=clock)
    reader = kafka.reader(5.0)
    reader.assign({TOPIC: {0: Offset(0)}})
    assert reader.poll(0.5) == ()
    assert clock.passed_s == 0.5
    with pytest.raises(NotNowError):
        list(reader.read_to({TOPIC: {0: Offset(1)}}))
    assert clock.passed_s == 5.5
    writer = started(kafka)
    writer.begin()
    writer.send(TOPIC, None, b"", timestamp_ms=1)
    assert not kafka.await_decided(TOPIC)
    assert clock.passed_s == 5.5 + DECIDED_WITHIN_S
    writer.abort(deadline(kafka))
    kafka.clock = Later()
    assert [record.value for record in reader.poll(0.5)] == [b"later"]


def test_defaults_of_topic_settings_can_be_changed() -> None:
    """A topic's own setting takes precedence; the broker sets the time where it is configured."""
    clock = TwinClock()
    kafka = MemoryKafka(clock, {"message.timestamp.type": "LogAppendTime"})
    own = (("message.timestamp.type", "CreateTime"),)
    kafka.create_topics((NewTopicSpec(TOPIC, 1, 1, own),))
    create(kafka, "other")
    for name in (TOPIC, TopicName("other")):
        kafka.append(name, None, b"", timestamp_ms=7)
    times = [records(kafka, name)[0].timestamp_ms for name in (TOPIC, "other")]
    assert times == [7, clock.now_ms()]


def test_threads_lose_no_record_and_share_no_offset() -> None:
    """Writers with and without transactions at the same time."""
    kafka = with_topics([TOPIC])

    def write(number: int) -> None:
        writer = kafka.transactions(TransactionalId(f"writer {number}"))
        writer.start(deadline(kafka))
        for at in range(50):
            writer.begin()
            writer.send(TOPIC, None, b"%d" % at, timestamp_ms=1)
            kafka.append(TOPIC, None, b"plain")
            writer.commit(deadline(kafka))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    partition = kafka.topics[TOPIC].partitions[0]
    assert [one.offset for one in partition.log] == list(range(600))
    assert len(partition.read(0, 600, Isolation.COMMITTED)) == 400
