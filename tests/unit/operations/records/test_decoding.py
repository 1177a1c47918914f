import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Offset, TopicName
from pipeline.operations.records.decoding import decode_record
from schemas import avro, codec, wire
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.deploy.twins import NOW, TwinRegistry

SCHEMA = '{"type":"record","name":"Car","fields":[{"name":"id","type":"long"}]}'
BODY = codec.encode(avro.parse(SCHEMA), {"id": 7})
UNKNOWN = "00000000-0000-0000-0000-000000000007"


def record(value: bytes, *headers: tuple[str, bytes]) -> KafkaRecord:
    """A record of the topic `cars`."""
    return KafkaRecord(TopicName("cars"), 0, Offset(1), NOW, b"a", value, headers)


@pytest.fixture
def registry() -> TwinRegistry:
    """A registry with one schema."""
    made = TwinRegistry(MemoryStore(MemoryTree()))
    made.register("cars-value", SCHEMA)
    return made


def header(guid: str) -> tuple[str, bytes]:
    """Header with the GUID of a schema."""
    return wire.Part.VALUE.value, b"\x01" + bytes.fromhex(guid.replace("-", ""))


def test_a_handle_is_a_prefix_of_the_value_or_a_header(registry: TwinRegistry) -> None:
    """An id or a GUID."""
    (guid,) = registry.state.contents
    prefixed = wire.join(registry.register("cars-value", SCHEMA), BODY)
    for one in (record(prefixed), record(BODY, header(guid))):
        found = decode_record(one, registry)
        assert (found.value, found.problem) == ({"id": 7}, "")


def test_a_value_without_a_schema_has_the_missing_handle_as_its_problem(
    registry: TwinRegistry,
) -> None:
    """It is base64."""
    found = decode_record(record(b"x", header(UNKNOWN)), registry)
    assert found.value == "eA=="
    assert found.problem == f"the registry has no schema with GUID {UNKNOWN}"
