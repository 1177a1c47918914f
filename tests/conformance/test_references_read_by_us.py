"""Records of Confluent's serializer whose schemas refer to others, as our side reads them."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.cli.decoding import decoded
from pipeline.ids import Millis, Offset, SchemaId, TopicName
from schemas.avro import parse
from schemas.client import RegistryClient
from schemas.codec import encode
from schemas.server import RegistryServer
from schemas.wire import join
from tests.conformance.conftest import OpenSession

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the client's own dependencies say about each other
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

SIZE = '{"type":"enum","name":"Size","namespace":"parts","symbols":["SMALL","LARGE"]}'
WHEEL = (
    '{"type":"record","name":"Wheel","namespace":"parts","fields":['
    '{"name":"inch","type":"int"},{"name":"size","type":"Size"}]}'
)
CART = (
    '{"type":"record","name":"Cart","namespace":"carts","fields":['
    '{"name":"front","type":"parts.Wheel"},{"name":"size","type":["null","parts.Size"]},'
    '{"name":"others","type":{"type":"array","items":"parts.Wheel"}}]}'
)
VALUE = {
    "front": {"inch": 16, "size": "SMALL"},
    "size": "LARGE",
    "others": [{"inch": 20, "size": "LARGE"}],
}
CONTEXT = SerializationContext("carts", MessageField.VALUE)


@dataclass(frozen=True)
class Sides:
    """Both clients of one registry."""

    ours: RegistryClient
    theirs: Any


@pytest.fixture(params=["", "/contexts/.workshop"], ids=["default context", "another context"])
def sides(open_session: OpenSession, request: pytest.FixtureRequest) -> Iterator[Sides]:
    """A fresh registry."""
    server = RegistryServer(open_session(), "127.0.0.1", 0)
    server.start()
    url = f"{server.url}{request.param}"
    ours = RegistryClient(url)
    try:
        with SchemaRegistryClient({"url": url, "max.retries": 0}) as theirs:
            yield Sides(ours, theirs)
    finally:
        ours.close()
        server.stop()


def written(client: Any) -> bytes:
    """A record, its schema and what that refers to registered by Confluent's client."""
    client.register_schema("sizes", Schema(SIZE, "AVRO"))
    size = SchemaReference("parts.Size", "sizes", 1)
    client.register_schema("wheels", Schema(WHEEL, "AVRO", [size]))
    wheel = SchemaReference("parts.Wheel", "wheels", 1)
    serializer = AvroSerializer(client, Schema(CART, "AVRO", [wheel]))
    return bytes(serializer(VALUE, CONTEXT))


def test_a_record_is_decoded(sides: Sides) -> None:
    """As `medusa tail` shows it, by the id in front of it or the GUID in its header."""
    value = written(sides.theirs)
    guid = sides.theirs.get_latest_version("carts-value").guid
    headers = (("__value_schema_id", b"\x01" + bytes.fromhex(guid.replace("-", ""))),)
    at = (TopicName("carts"), 0, Offset(0), Millis(0))
    for record in (
        KafkaRecord(*at, None, value, ()),
        KafkaRecord(*at, None, value[5:], headers),
    ):
        found = decoded(record, sides.ours)
        assert (found.problem, found.data["value"]) == ("", VALUE)


def test_a_record_is_written(sides: Sides) -> None:
    """As `medusa produce` writes it: with the newest version, which Confluent's side reads."""
    value = written(sides.theirs)
    latest = sides.ours.latest("carts-value")
    assert latest is not None
    assert latest.id == int.from_bytes(value[1:5], "big")
    schema = parse(latest.text)
    assert schema.names.keys() == {"parts.Size", "parts.Wheel", "carts.Cart"}
    assert join(latest.id, encode(schema, VALUE)) == value
    assert AvroDeserializer(sides.theirs)(value, CONTEXT) == VALUE


def test_written_out_it_is_the_same_schema(sides: Sides) -> None:
    """What a deploy looks up: the registry finds it under the id that records carry."""
    value = written(sides.theirs)
    found = sides.ours.schema_of(SchemaId(int.from_bytes(value[1:5], "big")))
    assert found is not None
    assert sides.ours.lookup("carts-value", found.text) == int.from_bytes(value[1:5], "big")
    assert sides.ours.check("carts-value", found.text) == ()
