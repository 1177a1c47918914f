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
    """It has one schema."""
    made = TwinRegistry(MemoryStore(MemoryTree()))
    made.register("cars-value", SCHEMA)
    return made


def header(guid: str) -> tuple[str, bytes]:
    """What names a schema by its GUID."""
    return wire.Part.VALUE.value, b"\x01" + bytes.fromhex(guid.replace("-", ""))


def test_a_schema_may_stand_before_the_value_or_in_a_header(registry: TwinRegistry) -> None:
    """By its id, or by its GUID."""
    (guid,) = registry.state.contents
    prefixed = wire.join(registry.register("cars-value", SCHEMA), BODY)
    for one in (record(prefixed), record(BODY, header(guid))):
        found = decode_record(one, registry)
        assert (found.value, found.problem) == ({"id": 7}, "")


def test_what_cannot_be_decoded_says_which_schema_is_missing(registry: TwinRegistry) -> None:
    """And is shown byte for byte."""
    found = decode_record(record(b"x", header(UNKNOWN)), registry)
    assert found.value == "eA=="
    assert found.problem == f"the registry has no schema with GUID {UNKNOWN}"
