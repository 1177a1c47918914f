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


def test_an_id_is_absent_once_it_was_looked_up_again_in_vain() -> None:
    """It was missing before, so a record was sent again; it is not looked up for ever."""
    missing = {SchemaId(3)}
    surveyor = Surveyor(
        cast("RegistryClient", Registry()),
        cast("KafkaAdmin", EveryTopic()),
        lambda: frozenset(missing),
        missing.add,
    )
    found = surveyor.survey(fragment("tolls"), {}, (SchemaId(5), SchemaId(6)))
    assert {w.id for writers in found.writers.values() for w in writers} == {5}
    assert (found.missing, found.absent) == ((3, 6), ())
    again = surveyor.survey(fragment("tolls"), {}, (SchemaId(6),))
    assert (again.missing, again.absent) == ((3, 6), (6,))
