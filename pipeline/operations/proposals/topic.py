"""Proposal of a network document for an existing topic, from its newest records."""

from dataclasses import dataclass

from pipeline.clock import Clock
from pipeline.errors import RefusedError
from pipeline.ids import TopicName
from pipeline.network import avro_types
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.operations.connections import Connections
from pipeline.operations.proposals.document import (
    Subscribed,
    document,
    idle_after_ms,
    lateness_ms,
    output_topic,
)
from pipeline.operations.proposals.measurements import Measurements, measure
from pipeline.operations.proposals.sample import sample
from pipeline.operations.streams import newest_schema
from pipeline.settings import Settings
from schemas.avro import parse


@dataclass(frozen=True, slots=True)
class Proposal:
    """A network that counts the records of a topic per minute.

    Args:
        document: its YAML text, with the measurements in comments.
        output: the topic of the counts.
        found: the measurements.
    """

    document: str
    output: TopicName
    found: Measurements

    @property
    def lateness_ms(self) -> int:
        """The lateness in the document."""
        return lateness_ms(self.found.disorder)

    @property
    def idle_after_ms(self) -> int:
        """The idle_after of the document."""
        return idle_after_ms(self.found.gap_ms)


def propose(
    topic: TopicName,
    event_time: str | None,
    file: str,
    settings: Settings,
    connections: Connections,
    clock: Clock,
) -> Proposal:
    """Sample a topic and write a document for it; changes nothing.

    Args:
        topic: the topic to read.
        event_time: the SQL expression of the event time; None: the best candidate of the schema.
        file: the name of the document, for errors.
        settings: contain Kafka's addresses, for errors.
        connections: to Kafka and the registry.
        clock: bounds the sampling.

    Raises:
        RefusedError: there is no such topic.
        SchemaError: it has no schema in the registry, or one that is no record.
        InputError: no field can be the event time, or `event_time` is no expression for it.
    """
    if topic not in connections.topics.describe([topic]):
        raise RefusedError(
            f"there is no topic {topic}",
            place=f"Kafka {settings.kafka_bootstrap_servers}",
            hint="set another address of Kafka with --set kafka.bootstrap_servers=HOST:PORT.",
        )
    registered = newest_schema(topic, connections)
    schema = parse(registered.text)
    columns = avro_types.read(schema.value).columns
    found = measure(columns, sample(topic, schema, columns, connections, clock), event_time)
    text = document(Subscribed(topic, registered.subject, int(registered.version), columns), found)
    schema_text = SchemaText(registered.text, f"subject {registered.subject}")
    load(text, file, dict.fromkeys(schema_references(text, file), schema_text))
    return Proposal(text, output_topic(topic), found)
