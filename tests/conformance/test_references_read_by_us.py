"""Schema references: interoperability of Confluent's client and Medusa's."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from brokers.records import KafkaRecord
from pipeline.cli.main import run
from pipeline.ids import Millis, Offset, SchemaId, TopicName
from pipeline.operations.records.decoding import decode_record
from schemas.avro import parse
from schemas.client import RegistryClient
from schemas.codec import encode
from schemas.compatibility import Level
from schemas.records import IncompatibleSchemaError
from schemas.registry.content import Reference
from schemas.server import RegistryServer
from schemas.wire import join
from tests.conformance.conftest import OpenSession

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the client's dependencies warn about each other
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
    """A record by Confluent's client, which also registers its schema and the references."""
    client.register_schema("sizes", Schema(SIZE, "AVRO"))
    size = SchemaReference("parts.Size", "sizes", 1)
    client.register_schema("wheels", Schema(WHEEL, "AVRO", [size]))
    wheel = SchemaReference("parts.Wheel", "wheels", 1)
    serializer = AvroSerializer(client, Schema(CART, "AVRO", [wheel]))
    return bytes(serializer(VALUE, CONTEXT))


def test_a_record_is_decoded(sides: Sides) -> None:
    """As in `medusa tail`, by its prefixed id or the GUID in its header."""
    value = written(sides.theirs)
    guid = sides.theirs.get_latest_version("carts-value").guid
    headers = (("__value_schema_id", b"\x01" + bytes.fromhex(guid.replace("-", ""))),)
    at = (TopicName("carts"), 0, Offset(0), Millis(0))
    for record in (
        KafkaRecord(*at, None, value, ()),
        KafkaRecord(*at, None, value[5:], headers),
    ):
        found = decode_record(record, sides.ours)
        assert (found.problem, found.value) == ("", VALUE)


def test_a_record_is_encoded(sides: Sides) -> None:
    """As in `medusa produce`: by the newest version; Confluent's client decodes it."""
    value = written(sides.theirs)
    latest = sides.ours.latest("carts-value")
    assert latest is not None
    assert latest.id == int.from_bytes(value[1:5], "big")
    schema = parse(latest.text)
    assert schema.names.keys() == {"parts.Size", "parts.Wheel", "carts.Cart"}
    assert join(latest.id, encode(schema, VALUE)) == value
    assert AvroDeserializer(sides.theirs)(value, CONTEXT) == VALUE


def test_the_resolved_schema_is_found_in_the_registry(sides: Sides) -> None:
    """As in a deploy: the registry returns the id that is in the records."""
    value = written(sides.theirs)
    found = sides.ours.schema_of(SchemaId(int.from_bytes(value[1:5], "big")))
    assert found is not None
    assert sides.ours.lookup("carts-value", found.text) == int.from_bytes(value[1:5], "big")
    assert sides.ours.check("carts-value", found.text) == ()


def test_confluents_client_reads_a_schema_registered_by_medusa(sides: Sides) -> None:
    """Medusa's client registers all three schemas; Confluent's serializer uses them."""
    size, wheel = (Reference("parts.Size", "sizes", 1),), (Reference("parts.Wheel", "wheels", 1),)
    sides.ours.register("sizes", SIZE)
    assert sides.ours.check("wheels", WHEEL, size) == ()
    assert sides.ours.lookup("wheels", WHEEL, size) is None
    sides.ours.register("wheels", WHEEL, size)
    made = sides.ours.register("carts-value", CART, wheel)
    found = sides.theirs.get_latest_version("carts-value")
    assert [(one.name, one.version) for one in found.schema.references] == [("parts.Wheel", 1)]
    assert int.from_bytes(written(sides.theirs)[1:5], "big") == made
    assert sides.ours.lookup("carts-value", CART, wheel) == made


def test_an_incompatible_reference_is_reported_with_its_path(sides: Sides) -> None:
    """A type of another subject has changed incompatibly; the schema is not registered."""
    written(sides.theirs)
    fewer = SIZE.replace(',"LARGE"', "")
    sides.ours.admin.set_level("sizes", Level.NONE)
    sides.ours.register("sizes", fewer)
    sides.ours.admin.set_level("wheels", Level.NONE)
    sides.ours.register("wheels", WHEEL, (Reference("parts.Size", "sizes", 2),))
    wheel = (Reference("parts.Wheel", "wheels", 2),)
    (reason, *_) = sides.ours.check("carts-value", CART, wheel)
    assert "/fields/front/type/fields/size/type" in reason
    with pytest.raises(IncompatibleSchemaError) as caught:
        sides.ours.register("carts-value", CART, wheel)
    assert reason in caught.value.reasons


def test_the_command_line_registers_with_references(
    sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the newest version's number, under the name of its type."""
    for subject, text, options in (
        ("sizes", SIZE, ()),
        ("wheels", WHEEL, ("--reference", "sizes:latest")),
        ("carts-value", CART, ("--reference", "parts.Wheel=wheels:1")),
    ):
        file = tmp_path / f"{subject}.avsc"
        file.write_text(text, encoding="utf-8")
        verb = ("schema", "register", subject, str(file), "--registry", sides.ours.url)
        assert run([*verb, *options], None) == 0, capsys.readouterr().err
    latest = sides.ours.latest("carts-value")
    assert latest is not None
    assert latest.id == int.from_bytes(written(sides.theirs)[1:5], "big")
    cart = str(tmp_path / "carts-value.avsc")
    for call in (
        ("diff", "carts-value", cart, "--reference", "wheels:1"),
        ("check", cart, "--reference", "wheels:latest", "--subject", "carts-value"),
        ("show", "wheels"),
        ("evolve", "carts-value"),
    ):
        assert run(["schema", *call, "--registry", sides.ours.url], None) == 0
    assert "nothing changed" in capsys.readouterr().out


def test_a_reference_to_the_default_context(
    sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `:.:`, also under the URL of another context that has a subject of that name."""
    root, _, context = sides.ours.url.partition("/contexts/")
    sides.theirs.register_schema(":.:sizes", Schema(SIZE, "AVRO"))
    if context:
        fewer = SIZE.replace(',"LARGE"', "")
        sides.theirs.register_schema("sizes", Schema(fewer, "AVRO"))
    file = tmp_path / "wheel.avsc"
    file.write_text(WHEEL, encoding="utf-8")
    verb = ("schema", "register", "wheels", str(file), "--reference", ":.:sizes:1")
    assert run([*verb, "--registry", sides.ours.url], None) == 0, capsys.readouterr().err
    made = sides.ours.register("carts-value", CART, (Reference("parts.Wheel", "wheels", 1),))
    subject = f":{context}:carts-value" if context else "carts-value"
    for url, name in ((sides.ours.url, "carts-value"), (root, subject)):
        fresh = RegistryClient(url)
        version = fresh.admin.version(name, "latest", resolved=True)
        by_id = fresh.schema_of(SchemaId(made)) if url == sides.ours.url else version
        for found in (version, fresh.latest(name), by_id):
            assert found is not None
            assert '"symbols":["SMALL","LARGE"]' in found.text
        fresh.close()
