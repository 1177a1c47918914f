"""Made-up records, sent to a topic in its newest value schema."""

from collections.abc import Iterable

from connectors.generators.disturbing import Sent
from connectors.generators.encoding import AvroEncoding
from connectors.generators.kind import Kind
from pipeline.errors import SchemaError
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.produce import line_encoding

_FLUSH_WITHIN_S = 30.0


def topic_encoding(topic: TopicName, kind: Kind, connections: Connections) -> AvroEncoding:
    """How records of a kind are encoded for a topic.

    Raises:
        SchemaError: the topic has no schema.
        InputError: its schema has no field for the key.
    """
    found = line_encoding(topic, kind.key, connections)
    return AvroEncoding(found.schema, found.schema_id, kind.key)


def send_made(
    sent: Iterable[Sent], topic: TopicName, encoding: AvroEncoding, connections: Connections
) -> int:
    """Send records until they end or a delivery fails; wait until all have arrived.

    Returns:
        Their number.

    Raises:
        SchemaError: the schema of the topic does not fit what is made.
        MedusaError: a delivery failed.
    """
    producer = connections.producer()
    count = 0
    for one in sent:
        try:
            value = encoding.value_of(one)
        except SchemaError as error:
            raise SchemaError(
                f"the schema of {topic} does not fit what is made: {error.message}",
                place=error.place,
                hint="`medusa generate KIND --schema` prints the schema that does.",
            ) from error
        producer.send(topic, encoding.key_of(one), value)
        count += 1
        if producer.undelivered:
            break
    producer.flush(_FLUSH_WITHIN_S)
    return count
