"""Records whose schema references another subject."""

import json

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from pipeline.catalog.fragment_status import LaneState
from tests.system.support import Installation, readings

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("node")]

PLACE = {
    "type": "record",
    "name": "Place",
    "namespace": "roads",
    "fields": [{"name": "segment", "type": "string"}, {"name": "lane", "type": "int"}],
}
FIELDS = [
    {"name": "sensor", "type": "string"},
    {"name": "begun", "type": "roads.Place"},
    {"name": "ended", "type": ["null", "roads.Place"]},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
TRIP = {"type": "record", "name": "Trip", "namespace": "cars", "fields": FIELDS}
ALONE = {**TRIP, "fields": [FIELDS[0], {"name": "begun", "type": PLACE}, *FIELDS[2:]]}
DOCUMENT = """
network: references
streams:
  trips:
    topic: references-in
    schema: trip.avsc
    event_time: at
    lateness: 1s
    partitions: 1
boxes:
  places:
    map: trips
    select: {sensor: sensor, begun: begun.segment, ended: ended.lane, at: at}
outputs: {places: {topic: references-out}}
"""
COUNT = 20


def produced(medusa: Installation) -> list[tuple[str, str, int | None]]:
    """Send records of Confluent's serializer; returns the expected results."""
    trips = [
        {
            "sensor": reading["sensor"],
            "begun": {"segment": f"s{reading['value']}", "lane": 1},
            "ended": {"segment": "end", "lane": 2} if reading["value"] % 2 else None,
            "at": reading["at"],
        }
        for reading in readings(COUNT)
    ]
    where = SerializationContext("references-in", MessageField.VALUE)
    with SchemaRegistryClient({"url": medusa.stack.registry_url}) as client:
        client.register_schema("places", Schema(json.dumps(PLACE), "AVRO"))
        place = SchemaReference("roads.Place", "places", 1)
        serializer = AvroSerializer(client, Schema(json.dumps(TRIP), "AVRO", [place]))
        for trip in trips:
            medusa.send("references-in", serializer(trip, where))
    medusa.producer.flush(10)
    return [(t["sensor"], t["begun"]["segment"], (t["ended"] or {}).get("lane")) for t in trips]


def test_records_with_schema_references_are_read(medusa: Installation) -> None:
    """By their prefixed id; the schema check of a later deploy passes."""
    medusa.deploy(DOCUMENT, {"trip.avsc": ALONE})
    medusa.await_state("references", "places", LaneState.RUNNING)
    expected = produced(medusa)
    medusa.wait_for(
        lambda: medusa.has_more_than("references-out", COUNT - 1), "all results", within_s=60
    )
    found = medusa.decoded("references-out")
    assert [(row["sensor"], row["begun"], row["ended"]) for row in found] == expected
    medusa.deploy(DOCUMENT, {"trip.avsc": ALONE})
