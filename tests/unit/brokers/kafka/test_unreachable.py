"""Kafka clients without a reachable broker: an error within the timeout."""

import time
from collections.abc import Callable

import pytest

from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.cluster import RemoteKafka
from brokers.kafka.producer import PlainProducer
from brokers.kafka.reader import TopicReader
from brokers.log_reader import LogReader
from brokers.ports import free_port
from brokers.records import NewTopicSpec
from pipeline.errors import UnavailableError
from pipeline.ids import GroupName, Millis, Offset, TopicName

TOPIC = TopicName("t")
LIMIT_S = 0.5


def nowhere() -> str:
    """An address without a listener."""
    return f"127.0.0.1:{free_port()}"


def poll_often(reader: TopicReader) -> None:
    """Poll for up to five seconds."""
    for _ in range(50):
        reader.poll(0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.cluster_id(),
        lambda admin: admin.topic_names(),
        lambda admin: admin.describe((TOPIC,)),
        lambda admin: admin.topic_configs((TOPIC,)),
        lambda admin: admin.end_offsets((TOPIC,)),
        lambda admin: admin.start_offsets((TOPIC,)),
        lambda admin: admin.offsets_for_time(TOPIC, Millis(0)),
        lambda admin: admin.create_topics((NewTopicSpec(TOPIC, 1, 1),)),
        lambda admin: admin.delete_topics((TOPIC,)),
        lambda admin: admin.delete_group(GroupName("g")),
    ],
)
def test_administration_without_a_broker(call: Callable[[KafkaAdmin], object]) -> None:
    """Each call is unavailable within its limit and a little."""
    address = nowhere()
    admin = KafkaAdmin(address, LIMIT_S)
    began = time.monotonic()
    with pytest.raises(UnavailableError, match=address):
        call(admin)
    assert time.monotonic() - began < LIMIT_S + 3


def test_reading_without_a_broker() -> None:
    """A range, the last records and an open-ended reader all report that Kafka is unreachable."""
    address = nowhere()
    with pytest.raises(UnavailableError, match=address):
        LogReader(RemoteKafka(address), LIMIT_S).last(TOPIC)
    with TopicReader(address, LIMIT_S) as reader:
        reader.assign({TOPIC: {0: Offset(0)}})
        with pytest.raises(UnavailableError, match=address):
            list(reader.read_to({TOPIC: {0: Offset(5)}}))
        reader.assign({TOPIC: {0: Offset(0)}})
        with pytest.raises(UnavailableError, match=address):
            poll_often(reader)


def test_sending_without_a_broker() -> None:
    """A record that is not delivered in time is reported by the flush, once."""
    address = nowhere()
    producer = PlainProducer(address, LIMIT_S)
    for _ in range(3):
        producer.send(TOPIC, b"k", b"v")
    with pytest.raises(UnavailableError, match="3 records were not delivered"):
        producer.flush(5.0)
    producer.flush(1.0)
    producer.close()


def test_empty_requests_need_no_broker() -> None:
    """They return immediately."""
    admin = KafkaAdmin(nowhere(), LIMIT_S)
    assert admin.create_topics(()) == ()
    assert admin.delete_topics(()) == ()
    assert admin.describe(()) == {}
    assert admin.topic_configs(()) == {}
    assert admin.end_offsets(()) == {}
    with TopicReader(nowhere(), LIMIT_S) as reader:
        reader.assign({TOPIC: {0: Offset(5)}})
        assert list(reader.read_to({TOPIC: {0: Offset(5)}})) == []
