"""What a deploy needs of Kafka and of the schema registry, as small protocols.

`brokers.kafka.admin.KafkaAdmin`, `brokers.kafka.reader.LogReader` and
`schemas.client.RegistryClient` fit them as they are; tests hand in twins.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from brokers.records import Ends, KafkaRecord, NewTopicSpec, TopicDescription
from pipeline.ids import GroupName, Millis, SchemaId, TopicName
from schemas.records import RegisteredSchema


class Topics(Protocol):
    """Kafka's topics and groups. Every method raises `UnavailableError` when no broker answers."""

    def describe(self, topics: Iterable[TopicName]) -> Mapping[TopicName, TopicDescription]:
        """The ones of these topics that exist."""

    def topic_names(self) -> tuple[TopicName, ...]:
        """All topics that are not Kafka's own."""

    def create_topics(self, topics: tuple[NewTopicSpec, ...]) -> tuple[TopicName, ...]:
        """Create those that do not exist; returns the names of those it created."""

    def delete_topics(self, topics: Iterable[TopicName]) -> tuple[TopicName, ...]:
        """Delete topics; returns the names of those that existed."""

    def delete_group(self, group: GroupName) -> bool:
        """Delete a consumer group without members; False if there is none."""

    def topic_configs(self, topics: Iterable[TopicName]) -> Mapping[TopicName, Mapping[str, str]]:
        """All settings in force of those topics that exist, defaults included."""

    def end_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The next offset to be visible, per partition of the topics that exist."""

    def start_offsets(self, topics: Iterable[TopicName]) -> Ends:
        """The oldest offset, per partition of the topics that exist."""


class Log(Protocol):
    """The records of topics. Every method raises `UnavailableError` when no broker answers."""

    def last(self, topic: TopicName) -> KafkaRecord | None:
        """The last committed record of partition 0; None if there is none."""

    def oldest_ms(self, topic: TopicName, partitions: int) -> Millis | None:
        """The least timestamp among the first records of its partitions; None: it is empty."""


class Registry(Protocol):
    """The schema registry. Methods raise `UnavailableError` when it does not answer."""

    def latest(self, subject: str) -> RegisteredSchema | None:
        """The newest schema of a subject; None if the subject is not known."""

    def readable_versions(self, subject: str) -> tuple[RegisteredSchema, ...]:
        """The versions of a subject, oldest first, without those that are not Avro."""

    def lookup(self, subject: str, schema_text: str) -> SchemaId | None:
        """The id of a schema, if some version of the subject is this schema."""

    def check(self, subject: str, schema_text: str) -> tuple[str, ...]:
        """Why a schema could not be registered under a subject; empty: it could."""

    def register(self, subject: str, schema_text: str) -> SchemaId:
        """Register a schema, or find it registered.

        Raises:
            SchemaError: it does not parse, or does not fit the subject.
        """
