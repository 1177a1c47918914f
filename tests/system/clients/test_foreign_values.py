"""Interoperability of Medusa's codec and Confluent's serializers for Node, Go and Python."""

import base64
import json
import warnings
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from schemas.avro import parse
from schemas.client import RegistryClient
from schemas.codec import decode, encode
from schemas.wire import Framed, Part, identified, join
from tests.system.clients.conftest import StartClient
from tests.system.clients.foreign import Foreign, Served
from tests.system.clients.installing import Program

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the client's dependencies warn about each other
    from confluent_kafka.schema_registry import (
        SchemaRegistryClient,
        header_schema_id_serializer,
        prefix_schema_id_serializer,
    )
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.second_tier("in other languages; unit tests of the codec hold the same bytes"),
]


def sighting(segment: str, *more: dict[str, Any]) -> str:
    """The text of a schema with fields of every kind."""
    place = [{"name": "road", "type": "string"}, {"name": "segment", "type": segment}]
    fields = [
        {"name": "plate", "type": "string"},
        {"name": "seen", "type": "long"},
        {"name": "speed", "type": "double"},
        {"name": "lane", "type": ["null", "int"], "default": None},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["car", "bus"]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "photo", "type": "bytes"},
        {"name": "where", "type": {"type": "record", "name": "Place", "fields": place}},
        *more,
    ]
    made = {"type": "record", "name": "Sighting", "namespace": "roads", "fields": fields}
    return json.dumps(made, separators=(",", ":"))


OLD = sighting("int")
NEW = sighting("long", {"name": "note", "type": "string", "default": "none"})
TOPIC = "cars"
SUBJECT = "cars-value"
FULL: dict[str, Any] = {
    "plate": "M-Ü 1",
    "seen": 2**52 + 1,
    "speed": 88.25,
    "lane": 3,
    "kind": "bus",
    "tags": ["a", "ß", ""],
    "counts": {"x": -1},
    "photo": b"\x00\x01\xff",
    "where": {"road": "A9", "segment": -7},
}
EMPTY: dict[str, Any] = {**FULL, "lane": None, "tags": [], "counts": {}, "photo": b"", "plate": ""}
VALUES = (FULL, EMPTY)
Headers = list[tuple[str, str | bytes | None]]
"""As Confluent's client for Python takes them."""
Record = dict[str, Any]
"""A value's bytes and its headers, in the form of a foreign client."""


class Ours:
    """Medusa's reader and writer."""

    def __init__(self, registry: RegistryClient) -> None:
        self._registry = registry

    def write(self, value: Any) -> Record:
        """Encode a value by the old schema."""
        latest = self._registry.latest(SUBJECT)
        assert latest is not None
        return record(join(latest.id, encode(parse(OLD), value)), {})

    def read(self, written: Record) -> Any:
        """Decode a value by the old schema."""
        content, headers = parts(written)
        framed = identified(content, headers, Part.VALUE)
        assert isinstance(framed, Framed)
        writer = self._registry.schema_of(framed.schema)
        assert writer is not None
        return decode(writer, parse(OLD), framed.body)


class OfPython:
    """Confluent's reader and writer for Python."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def write(self, value: Any, *, header: bool) -> Record:
        """Encode a value by the old schema."""
        chosen = header_schema_id_serializer if header else prefix_schema_id_serializer
        settings = {"auto.register.schemas": False, "schema.id.serializer": chosen}
        headers: Headers = []
        context = SerializationContext(TOPIC, MessageField.VALUE, headers)
        written = AvroSerializer(self._registry, OLD, conf=settings)(value, context)
        return record(
            written, {name: encoded for name, encoded in headers if isinstance(encoded, bytes)}
        )

    def read(self, written: Record) -> Any:
        """Decode a value by its writer's schema."""
        content, named = parts(written)
        headers: Headers = [*named]
        context = SerializationContext(TOPIC, MessageField.VALUE, headers)
        return AvroDeserializer(self._registry)(content, context)


class OfForeign:
    """Confluent's reader and writer in another language."""

    def __init__(self, client: Foreign) -> None:
        self._client = client

    def write(self, value: Any, *, header: bool) -> Record:
        """Encode a value by the latest schema."""
        encoded = {**value, "photo": base64.b64encode(value["photo"]).decode()}
        written: Record = self._client.request("write", topic=TOPIC, value=encoded, header=header)
        return written

    def read(self, written: Record, *, latest: bool = False) -> Any:
        """Decode a value by its writer's schema, or by the latest one."""
        encoded = self._client.request("read", topic=TOPIC, latest=latest, **written)
        return {**encoded, "photo": base64.b64decode(encoded["photo"])}


def record(content: bytes, headers: dict[str, bytes]) -> Record:
    """A record in the form of a foreign client's JSON."""
    encoded = {name: base64.b64encode(value).decode() for name, value in headers.items()}
    return {"bytes": base64.b64encode(content).decode(), "headers": encoded}


def parts(written: Record) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The value and the headers of a record."""
    headers = [(name, base64.b64decode(encoded)) for name, encoded in written["headers"].items()]
    return base64.b64decode(written["bytes"]), headers


@pytest.fixture
def ours(in_memory: Served) -> Iterator[Ours]:
    """Medusa's client of the registry in memory."""
    with closing(RegistryClient(in_memory.url)) as registry:
        yield Ours(registry)


@pytest.fixture
def python(in_memory: Served) -> Iterator[OfPython]:
    """Confluent's client for Python."""
    with SchemaRegistryClient({"url": in_memory.url, "max.retries": 0}) as registry:
        yield OfPython(registry)


@pytest.fixture
def client(program: Program, in_memory: Served, start: StartClient) -> Foreign:
    """Each foreign client, with a registered schema."""
    found = start(program, in_memory)
    found.request("register", subject=SUBJECT, schema=OLD)
    return found


@pytest.mark.parametrize("header", [False, True], ids=["prefix", "header"])
def test_its_records_are_read_by_all(
    client: Foreign, ours: Ours, python: OfPython, *, header: bool
) -> None:
    """With a prefixed id, and with a GUID in a header; read by itself and by Python."""
    foreign = OfForeign(client)
    known = client.request("latest", subject=SUBJECT)
    guid = base64.b64encode(b"\1" + bytes.fromhex(known["guid"].replace("-", ""))).decode()
    for value in VALUES:
        written = foreign.write(value, header=header)
        if header:
            assert written["headers"] == {Part.VALUE.value: guid}
            assert parts(written)[0] != b""
        else:
            assert written["headers"] == {}
            assert parts(written)[0][:5] == b"\0" + known["id"].to_bytes(4, "big")
        assert foreign.read(written) == value
        assert ours.read(written) == value
        assert python.read(written) == value


@pytest.mark.parametrize("header", [False, True], ids=["prefix", "header"])
def test_it_reads_records_of_python(client: Foreign, python: OfPython, *, header: bool) -> None:
    """Confluent's serializer for Python, in both formats."""
    for value in VALUES:
        written = python.write(value, header=header)
        assert bool(written["headers"]) is header
        assert OfForeign(client).read(written) == value


def test_it_reads_records_of_medusa(client: Foreign, ours: Ours) -> None:
    """Medusa's codec and wire format."""
    for value in VALUES:
        assert OfForeign(client).read(ours.write(value)) == value


def test_a_newer_reader_schema(client: Foreign, ours: Ours) -> None:
    """It fetches the latest schema, widens a number, applies a default; Medusa is unaffected."""
    foreign = OfForeign(client)
    old = foreign.write(FULL, header=False)
    client.request("register", subject=SUBJECT, schema=NEW)
    assert foreign.read(old, latest=True) == {**FULL, "note": "none"}
    far = {**FULL, "note": "far", "where": {"road": "A9", "segment": 2**40}}
    new = foreign.write(far, header=False)
    assert foreign.read(new, latest=True) == far
    assert ours.read(old) == FULL


def test_a_schema_registered_by_the_serializer(client: Foreign, python: OfPython) -> None:
    """It is registered on serialization, and other readers fetch it."""
    value = {"name": "n", "count": 3, "share": 0.5}
    written = client.request("write_anything", topic="made-up", value=value)
    known = client.request("latest", subject="made-up-value")
    assert parts(written)[0][:5] == b"\0" + known["id"].to_bytes(4, "big")
    assert [field["name"] for field in json.loads(known["schema"])["fields"]] == [*value]
    assert python.read(written) == value


@pytest.mark.parametrize("header", [False, True], ids=["prefix", "header"])
def test_node_and_go_read_each_other(
    node: Program, go: Program, in_memory: Served, start: StartClient, *, header: bool
) -> None:
    """In both directions and both formats."""
    pair = [start(program, in_memory) for program in (node, go)]
    pair[0].request("register", subject=SUBJECT, schema=OLD)
    for writer, reader in (pair, pair[::-1]):
        for value in VALUES:
            assert OfForeign(reader).read(OfForeign(writer).write(value, header=header)) == value
