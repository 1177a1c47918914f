"""Results as read by external Kafka clients with the documented settings."""

import json
import time
from collections import Counter

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pipeline.catalog.fragment_status import LaneState
from tests.system.support import READING, Installation, readings

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node")]

DOCUMENT = """
network: outsiders
streams:
  readings:
    topic: outsiders-in
    schema: reading.avsc
    event_time: at
    lateness: 1s
    partitions: 1
boxes:
  doubled:
    map: readings
    select: {sensor: sensor, twice: value * 2, at: at}
outputs: {doubled: {topic: outsiders-out}}
"""
COUNT = 60
GROUP = "local.outsiders.doubled"


def results(medusa: Installation) -> list[tuple[str, int]]:
    """All results, read by a plain consumer with a group and its own deserializer."""
    consumer = Consumer(
        {
            "bootstrap.servers": medusa.stack.kafka_bootstrap_servers,
            "group.id": f"outsider-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    where = SerializationContext("outsiders-out", MessageField.VALUE)
    found: list[tuple[str, int]] = []
    ends_at = time.monotonic() + 60
    with SchemaRegistryClient({"url": medusa.stack.registry_url}) as registry:
        decode = AvroDeserializer(registry)
        try:
            consumer.subscribe(["outsiders-out"])
            while len(found) < COUNT and time.monotonic() < ends_at:
                for message in consumer.consume(100, 0.5):
                    row = decode(message.value(), where)
                    found.append((row["sensor"], row["twice"]))
        finally:
            consumer.close()
    return found


def mirrored(medusa: Installation) -> int:
    """The sum of a group's committed offsets on the input, as lag tools compute it."""
    admin = AdminClient({"bootstrap.servers": medusa.stack.kafka_bootstrap_servers})
    (offsets,) = admin.list_consumer_group_offsets(
        [ConsumerGroupTopicPartitions(GROUP)], request_timeout=10
    ).values()
    partitions: list[TopicPartition] = offsets.result(10).topic_partitions
    return sum(max(0, p.offset) for p in partitions if p.topic == "outsiders-in")


def test_a_plain_consumer_and_a_lag_tool_read_the_documented_data(medusa: Installation) -> None:
    """Each result once, decoded by the registry alone; positions in the group; boundaries."""
    medusa.deploy(DOCUMENT, {"reading.avsc": READING})
    medusa.await_state("outsiders", "doubled", LaneState.RUNNING)
    sent = readings(COUNT)
    for reading in sent:
        medusa.send("outsiders-in", medusa.encoded("outsiders-in-value", READING, reading))
    medusa.producer.flush(10)
    expected = Counter((reading["sensor"], reading["value"] * 2) for reading in sent)
    assert Counter(results(medusa)) == expected
    medusa.wait_for(lambda: mirrored(medusa) == COUNT, "the group stands at the end", within_s=60)
    closed = sent[-1]["at"] - 1_001

    def promised() -> bool:
        records = medusa.records("outsiders-out.boundaries")
        own = [r for r in records if r.key == b"local.outsiders.doubled"]
        return any(json.loads(record.value or b"")["boundary_ms"] >= closed for record in own)

    medusa.wait_for(promised, "a boundary up to the last record", within_s=60)
