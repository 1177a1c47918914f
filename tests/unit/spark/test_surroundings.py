from collections.abc import Iterable, Mapping
from typing import cast

from brokers.kafka.admin import KafkaAdmin
from brokers.records import TopicDescription
from pipeline.ids import SchemaId, TopicName
from pipeline.spark.surroundings import Surveyor
from schemas.avro import AvroSchema, parse
from schemas.client import RegistryClient
from schemas.records import RegisteredSchema
from tests.unit.spark.support import SCHEMA, fragment


class EveryTopic:
    """A Kafka in which every topic has two partitions."""

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """Whatever is asked for."""
        return {topic: TopicDescription(topic, "id", 2) for topic in topics}


class Registry:
    """A registry with one schema, under id 5."""

    def lookup(self, _subject: str, _text: str) -> SchemaId:
        """Everything is registered."""
        return SchemaId(1)

    def versions(self, _subject: str) -> tuple[RegisteredSchema, ...]:
        """None under the subjects of inputs."""
        return ()

    def schema_by_id(self, schema_id: SchemaId) -> AvroSchema | None:
        """The one that there is."""
        return parse(SCHEMA) if schema_id == SchemaId(5) else None


def test_ids_that_were_asked_for_are_known_or_recorded_as_missing_and_absent() -> None:
    """What others recorded before is missing, but not absent: it was not asked for now."""
    missing = {SchemaId(3)}
    surveyor = Surveyor(
        cast("RegistryClient", Registry()),
        cast("KafkaAdmin", EveryTopic()),
        lambda: frozenset(missing),
        missing.add,
    )
    found = surveyor.survey(fragment("tolls"), {}, (SchemaId(5), SchemaId(6)))
    assert {w.id for writers in found.writers.values() for w in writers} == {5}
    assert (found.missing, found.absent) == ((3, 6), (6,))
