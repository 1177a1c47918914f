"""An input that gets another partition while its lane runs."""

import time

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.producer import PlainProducer
from pipeline.catalog.records import LaneState
from pipeline.ids import TopicName
from tests.system.support import READING, TIMEOUT_S, Installation

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node"), pytest.mark.timeout(400)]

DOCUMENT = """
network: growing
streams:
  readings:
    topic: growing-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    idle_after: 2s
    partitions: 1
boxes:
  counts:
    aggregate: readings
    window: 1s
    by: [sensor]
    compute: {n: count(*)}
outputs: {counts: {topic: growing-out}}
"""
WITHIN_S = 90.0
TOPIC = TopicName("growing-in")


def test_a_new_partition_is_read_from_its_first_record(medusa: Installation) -> None:
    """Also what was written to it before the lane noticed; nothing before it is repeated."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    medusa.await_state("growing", "counts", LaneState.RUNNING)
    start = int(time.time()) * 1000

    def send(producer: PlainProducer, sensor: str, at: int, partition: int) -> None:
        value = medusa.encoded(
            "growing-in-value", READING, {"sensor": sensor, "value": 1, "at": at}
        )
        producer.send(TOPIC, None, value, partition=partition)
        producer.flush(10)

    def sensors() -> list[str]:
        return [row["sensor"] for row in medusa.decoded("growing-out")]

    send(medusa.producer, "old", start, 0)
    medusa.wait_for(lambda: sensors() == ["old"], "the first window", within_s=WITHIN_S)
    admin = AdminClient({"bootstrap.servers": medusa.stack.kafka_bootstrap_servers})
    (grown,) = admin.create_partitions([NewPartitions("growing-in", 2)]).values()
    grown.result(20)
    medusa.wait_for(
        lambda: medusa.admin.describe((TOPIC,))[TOPIC].partitions == 2,
        "the topic has grown",
        within_s=WITHIN_S,
    )
    # A producer that was there before learns of a new partition only after minutes.
    newer = PlainProducer(medusa.stack.kafka_bootstrap_servers, TIMEOUT_S)
    try:
        for partition in (0, 1):
            send(newer, f"new{partition}", start + 60_000, partition)
    finally:
        newer.close()
    medusa.wait_for(lambda: len(sensors()) >= 3, "both partitions", within_s=WITHIN_S)
    assert sorted(sensors()) == ["new0", "new1", "old"]
    assert medusa.records("growing.counts.dlq") == []
