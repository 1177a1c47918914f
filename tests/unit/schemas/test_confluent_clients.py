"""Confluent's own client, serializer and deserializer, against our registry over HTTP."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from brokers.memory_store import MemoryStore, MemoryTree
from schemas.avro import parse
from schemas.codec import decode
from schemas.server import RegistryServer
from schemas.wire import Framed, split

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the client's own dependencies say about each other
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient, SchemaRegistryError
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

CAR = '{"type":"record","name":"Car","fields":[{"name":"id","type":"long"}]}'
CAR_2 = CAR.replace("]", ',{"name":"kind","type":"string","default":"car"}]')
BAD = CAR.replace("long", "string")
VALUE = SerializationContext("cars", MessageField.VALUE)


@pytest.fixture
def client() -> Iterator[Any]:
    """Confluent's client for a registry on a free port."""
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    try:
        with SchemaRegistryClient({"url": server.url, "max.retries": 0}) as made:
            yield made
    finally:
        server.stop()


def test_serializer_registers_and_writes_our_wire_format(client: Any) -> None:
    """A producer that knows nothing of us registers its schema and writes what we read."""
    value = AvroSerializer(client, CAR)({"id": 7}, VALUE)
    framed = split(value)
    assert isinstance(framed, Framed)
    assert framed.schema_id == 1
    assert decode(parse(CAR), parse(CAR), framed.body) == {"id": 7}
    assert client.get_subjects() == ["cars-value"]


@pytest.mark.parametrize(
    "settings",
    [
        {"auto.register.schemas": False},
        {"auto.register.schemas": False, "use.latest.version": True},
        {"auto.register.schemas": True, "normalize.schemas": True},
    ],
)
def test_serializer_settings(client: Any, settings: dict[str, Any]) -> None:
    """Looking up, taking the latest, and normalizing find the registered schema."""
    client.register_schema("cars-value", Schema(CAR, "AVRO"))
    value = AvroSerializer(client, CAR, conf=settings)({"id": 7}, VALUE)
    assert AvroDeserializer(client)(value, VALUE) == {"id": 7}


def test_deserializer_resolves_to_its_own_schema(client: Any) -> None:
    """A reader with a newer schema reads an older record, by the id in the record."""
    value = AvroSerializer(client, CAR)({"id": 7}, VALUE)
    assert AvroDeserializer(client, CAR_2)(value, VALUE) == {"id": 7, "kind": "car"}


def test_incompatible_registration_is_refused(client: Any) -> None:
    """The client sees 409 and the reasons."""
    client.register_schema("cars-value", Schema(CAR, "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("cars-value", Schema(BAD, "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)
    assert "/fields/id/type" in caught.value.error_message


def test_the_rest_of_the_client(client: Any) -> None:
    """Versions, look-up, compatibility, levels and mode, as the client reads them."""
    schema = Schema(CAR, "AVRO")
    assert client.register_schema("cars-value", schema) == 1
    assert client.register_schema("cars-value", Schema(CAR_2, "AVRO")) == 2
    assert client.get_versions("cars-value") == [1, 2]
    assert client.get_version("cars-value", 1).schema.schema_str == CAR
    assert client.get_latest_version("cars-value").version == 2
    assert client.lookup_schema("cars-value", schema).version == 1
    assert client.get_schema(2).schema_str == CAR_2
    assert client.get_schema_types() == ["AVRO"]
    assert client.test_compatibility("cars-value", schema)
    assert not client.test_compatibility("cars-value", Schema(BAD, "AVRO"))
    assert not client.test_compatibility_all_versions("cars-value", Schema(BAD, "AVRO"))
    client.set_compatibility("cars-value", "NONE")
    assert client.get_compatibility("cars-value") == "NONE"
    assert client.test_compatibility("cars-value", Schema(BAD, "AVRO"))
    assert client.get_mode("cars-value") == "READWRITE"
    assert client.get_global_mode() == "READWRITE"


def test_what_is_not_there(client: Any) -> None:
    """The client sees 404 with the code of what is missing."""
    for call, arguments, code in (
        (client.get_schema, (9,), 40403),
        (client.get_latest_version, ("no",), 40401),
        (client.lookup_schema, ("no", Schema(CAR, "AVRO")), 40401),
    ):
        with pytest.raises(SchemaRegistryError) as caught:
            call(*arguments)
        assert (caught.value.http_status_code, caught.value.error_code) == (404, code)
