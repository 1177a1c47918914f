"""Confluent's own client, serializer and deserializer with our registry over HTTP."""

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from schemas.avro import parse
from schemas.codec import decode
from schemas.server import RegistryServer
from schemas.wire import Framed, split
from tests.memory_store import MemoryStore, MemoryTree

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what the client's own dependencies say about each other
    from confluent_kafka.schema_registry import (
        ConfigCompatibilityLevel,
        Metadata,
        MetadataProperties,
        Schema,
        SchemaReference,
        SchemaRegistryClient,
        SchemaRegistryError,
        ServerConfig,
        header_schema_id_serializer,
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
        topic_subject_name_strategy,
    )
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

CAR = '{"type":"record","name":"Car","fields":[{"name":"id","type":"long"}]}'
CAR_2 = CAR.replace("]", ',{"name":"kind","type":"string","default":"car"}]')
BAD = CAR.replace("long", "string")
WHEEL = (
    '{"type":"record","name":"Wheel","namespace":"parts","fields":[{"name":"inch","type":"int"}]}'
)
CART = '{"type":"record","name":"Cart","fields":[{"name":"wheel","type":"parts.Wheel"}]}'
VALUE = SerializationContext("cars", MessageField.VALUE)
KEY = SerializationContext("cars", MessageField.KEY)


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
    """A producer without Medusa registers its schema and writes records that we read."""
    value = AvroSerializer(client, CAR)({"id": 7}, VALUE)
    framed = split(value)
    assert isinstance(framed, Framed)
    assert framed.schema == 1
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
    """Lookup, use of the latest, and normalization find the registered schema."""
    client.register_schema("cars-value", Schema(CAR, "AVRO"))
    value = AvroSerializer(client, CAR, conf=settings)({"id": 7}, VALUE)
    assert AvroDeserializer(client)(value, VALUE) == {"id": 7}


def test_deserializer_resolves_to_its_own_schema(client: Any) -> None:
    """A reader with a newer schema reads an older record, by the id in the record."""
    value = AvroSerializer(client, CAR)({"id": 7}, VALUE)
    assert AvroDeserializer(client, CAR_2)(value, VALUE) == {"id": 7, "kind": "car"}


def test_incompatible_registration_is_refused(client: Any) -> None:
    """The client gets 409 and the reasons."""
    client.register_schema("cars-value", Schema(CAR, "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema("cars-value", Schema(BAD, "AVRO"))
    assert (caught.value.http_status_code, caught.value.error_code) == (409, 40901)
    assert "path '/fields/0/type'" in caught.value.error_message
    assert "{oldSchemaVersion: 1}" in caught.value.error_message


def test_other_calls_of_the_client(client: Any) -> None:
    """Versions, lookup, compatibility, levels and mode, as the client reads them."""
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
    assert client.get_global_mode() == "READWRITE"
    assert client.update_mode("cars-value", "READONLY") == "READONLY"
    assert client.get_mode("cars-value") == "READONLY"
    assert client.update_mode("cars-value", "READWRITE") == "READWRITE"
    assert client.delete_version("cars-value", 1) == 1
    assert client.delete_subject("cars-value", permanent=False) == [2]
    assert client.delete_subject("cars-value", permanent=True) == [1, 2]
    assert client.get_subjects() == []


def test_missing_subjects_versions_and_schemas(client: Any) -> None:
    """The client gets 404 with the code of the missing part."""
    for call, arguments, code in (
        (client.get_schema, (9,), 40403),
        (client.get_latest_version, ("no",), 40401),
        (client.lookup_schema, ("no", Schema(CAR, "AVRO")), 40401),
        (client.get_mode, ("no",), 40409),
        (client.get_compatibility, ("no",), 40408),
    ):
        with pytest.raises(SchemaRegistryError) as caught:
            call(*arguments)
        assert (caught.value.http_status_code, caught.value.error_code) == (404, code)


STRATEGIES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "cars-value", "cars-key"),
    ({"subject.name.strategy": topic_subject_name_strategy}, "cars-value", "cars-key"),
    ({"subject.name.strategy": record_subject_name_strategy}, "Car", "Car"),
    ({"subject.name.strategy": topic_record_subject_name_strategy}, "cars-Car", "cars-Car"),
    ({"subject.name.strategy.type": "ASSOCIATED"}, "cars-value", "cars-key"),
]


@pytest.mark.parametrize(("settings", "value_subject", "key_subject"), STRATEGIES)
def test_subject_name_strategies(
    client: Any, settings: dict[str, Any], value_subject: str, key_subject: str
) -> None:
    """By topic, by record, by both, and by an association, which no topic has here."""
    for context, subject in ((VALUE, value_subject), (KEY, key_subject)):
        written = AvroSerializer(client, CAR, conf=settings)({"id": 7}, context)
        assert subject in client.get_subjects()
        assert client.get_latest_version(subject).schema.schema_str == CAR
        assert AvroDeserializer(client, conf=settings)(written, context) == {"id": 7}


def test_a_schema_with_references_round_trips(client: Any) -> None:
    """The serializer registers it with its references; a reader finds both by the id."""
    client.register_schema("wheel", Schema(WHEEL, "AVRO"))
    cart = Schema(CART, "AVRO", [SchemaReference("parts.Wheel", "wheel", 1)])
    written = AvroSerializer(client, cart)({"wheel": {"inch": 16}}, VALUE)
    registered = client.get_latest_version("cars-value")
    assert [(r.name, r.subject, r.version) for r in registered.schema.references] == [
        ("parts.Wheel", "wheel", 1)
    ]
    assert AvroDeserializer(client)(written, VALUE) == {"wheel": {"inch": 16}}
    assert client.get_referenced_by("wheel", 1) == [registered.schema_id]
    with pytest.raises(SchemaRegistryError) as caught:
        client.delete_subject("wheel")
    assert caught.value.error_code == 42206


def test_the_latest_version_writes_and_reads(client: Any) -> None:
    """With `use.latest.version` the registered schema counts, not the program's own."""
    client.register_schema("cars-value", Schema(CAR, "AVRO"))
    client.register_schema("cars-value", Schema(CAR_2, "AVRO"))
    settings = {"auto.register.schemas": False, "use.latest.version": True}
    written = AvroSerializer(client, CAR, conf=settings)({"id": 7, "kind": "bus"}, VALUE)
    assert int.from_bytes(written[1:5], "big") == 2
    older = AvroSerializer(client, CAR)({"id": 8}, VALUE)
    latest = AvroDeserializer(client, conf={"use.latest.version": True})
    assert latest(written, VALUE) == {"id": 7, "kind": "bus"}
    assert latest(older, VALUE) == {"id": 8, "kind": "car"}


def test_normalized_schemas_share_an_id(client: Any) -> None:
    """With `normalize.schemas` notation is irrelevant, in both orders."""
    one = CAR.replace('"name":"Car"', '"name":"Car","b":1,"a":2')
    other = CAR.replace('"name":"Car"', '"name":"Car","a":2,"b":1')
    settings = {"normalize.schemas": True}
    written = [AvroSerializer(client, s, conf=settings)({"id": 7}, VALUE) for s in (one, other)]
    assert written[0] == written[1]
    assert client.get_versions("cars-value") == [1]
    assert AvroDeserializer(client)(written[0], VALUE) == {"id": 7}


def test_the_guid_can_be_in_a_header(client: Any) -> None:
    """Instead of the id in front of the record."""
    many = {"id": 2**60}  # the client takes no record of fewer than six bytes
    headers: list[tuple[str, str | bytes | None]] = []
    context = SerializationContext("cars", MessageField.VALUE, headers)
    settings = {"schema.id.serializer": header_schema_id_serializer}
    written = AvroSerializer(client, CAR, conf=settings)(many, context)
    assert decode(parse(CAR), parse(CAR), written) == many
    guid = client.get_latest_version("cars-value").guid
    assert headers == [("__value_schema_id", b"\x01" + bytes.fromhex(guid.replace("-", "")))]
    assert AvroDeserializer(client)(written, context) == many
    assert client.get_schema_by_guid(guid).schema_str == CAR


def test_the_version_with_some_metadata_writes(client: Any) -> None:
    """With `use.latest.with.metadata` the newest one that has these properties."""
    for text, major in ((CAR, "1"), (CAR_2, "2")):
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        client.register_schema("cars-value", Schema(text, "AVRO", metadata=metadata))
    settings = {"auto.register.schemas": False, "use.latest.with.metadata": {"major": "1"}}
    written = AvroSerializer(client, CAR_2, conf=settings)({"id": 7}, VALUE)
    assert int.from_bytes(written[1:5], "big") == 1


def test_configurations_round_trip(client: Any) -> None:
    """A client reads the values that it has set."""
    defaults = Metadata(None, MetadataProperties({"owner": "me"}), None)
    full = ConfigCompatibilityLevel.FULL
    config = ServerConfig(full, compatibility_group="major", default_metadata=defaults)
    assert client.set_config("cars-value", config)["compatibilityGroup"] == "major"
    found = client.get_config("cars-value")
    assert (found.compatibility_level, found.compatibility_group) == ("FULL", "major")
    assert found.default_metadata.properties == defaults.properties
    assert client.delete_config("cars-value").compatibility_level == "FULL"
    with pytest.raises(SchemaRegistryError):
        client.get_config("cars-value")
