"""The topic of heartbeats, over topics in memory."""

from collections.abc import Iterable
from functools import partial

import pytest

from brokers.kafka_interface import NoSuchTopicError
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.writers import MemoryProducer
from brokers.records import NewTopicSpec
from pipeline.errors import RetryError, UnavailableError
from pipeline.heartbeats.codec import decode
from pipeline.heartbeats.heartbeat import Heartbeat
from pipeline.heartbeats.topic import HeartbeatWriter, topic_spec
from pipeline.ids import Millis, NodeId, ParticipantId, SteadyMillis, TopicName
from pipeline.names import heartbeats_topic
from tests.unit.deploy.twins import TwinClock
from tests.unit.kafka import records, with_topics

ME = ParticipantId("ada")
TOPIC = heartbeats_topic(ME)


def heartbeat(number: int) -> Heartbeat:
    """A heartbeat."""
    return Heartbeat(NodeId("n1"), Millis(7), number, SteadyMillis(100 * number), 0)


def written(kafka: MemoryKafka) -> list[int]:
    """The numbers of the heartbeats in the topic."""
    return [decode(record.value, "").number for record in records(kafka, TOPIC)]


def test_the_writer_creates_the_topic() -> None:
    """With one partition, and a short retention."""
    kafka = with_topics(())
    writer = HeartbeatWriter(ME, kafka, partial(kafka.producer, 1.0))
    writer.send(heartbeat(1))
    writer.send(heartbeat(2))
    writer.end(1.0)
    assert written(kafka) == [1, 2]
    assert len(kafka.topics[TOPIC].partitions) == 1
    assert kafka.topics[TOPIC].config["retention.ms"] == "600000"


def test_an_existing_topic_stays_as_it_is() -> None:
    """Its settings may have been changed."""
    kafka = with_topics((TOPIC,))
    before = kafka.topic_configs((TOPIC,))
    HeartbeatWriter(ME, kafka, partial(kafka.producer, 1.0)).send(heartbeat(1))
    assert kafka.topic_configs((TOPIC,)) == before


def test_a_deleted_topic_is_created_again() -> None:
    """Of the heartbeats meanwhile one error is raised, and none is sent later."""
    kafka = with_topics(())
    writer = HeartbeatWriter(ME, kafka, partial(kafka.producer, 1.0))
    writer.send(heartbeat(1))
    kafka.delete_topics((TOPIC,))
    with pytest.raises(NoSuchTopicError):
        writer.send(heartbeat(2))
    writer.send(heartbeat(3))
    writer.send(heartbeat(4))
    assert written(kafka) == [3, 4]


def test_a_topic_that_cannot_be_created_is_tried_again() -> None:
    """With the next heartbeat."""

    class Away(MemoryKafka):
        away = True

        def create_topics(self, topics: Iterable[NewTopicSpec]) -> tuple[TopicName, ...]:
            if self.away:
                raise UnavailableError("Kafka does not answer")
            return super().create_topics(tuple(topics))

    kafka = Away(TwinClock())
    writer = HeartbeatWriter(ME, kafka, partial(kafka.producer, 1.0))
    with pytest.raises(UnavailableError):
        writer.send(heartbeat(1))
    kafka.away = False
    writer.send(heartbeat(2))
    assert written(kafka) == [2]


def test_the_topic_takes_the_default_replication_of_the_brokers() -> None:
    """As the event log does."""
    assert topic_spec(ME) == NewTopicSpec(TOPIC, 1, -1, topic_spec(ME).config)


def test_a_producer_that_cannot_go_on_is_replaced() -> None:
    """An idempotent one ends with some errors, and every later record with it."""

    class Broken(MemoryProducer):
        closed = False

        def send(self, *_: object, **__: object) -> None:
            raise RetryError("the Kafka client cannot go on and has to be started anew")

        def close(self) -> None:
            self.closed = True

    kafka = with_topics((TOPIC,))
    broken = Broken(kafka)
    producers = iter((broken, kafka.producer(1.0)))
    writer = HeartbeatWriter(ME, kafka, lambda: next(producers))
    with pytest.raises(RetryError, match="started anew"):
        writer.send(heartbeat(1))
    assert broken.closed
    writer.send(heartbeat(2))
    assert written(kafka) == [2]
