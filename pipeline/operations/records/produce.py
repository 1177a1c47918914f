"""Producer of records, in the newest value schema of a topic."""

from collections.abc import Iterable

from pipeline.errors import InputError
from pipeline.ids import TopicName
from pipeline.operations.connections import Connections
from pipeline.operations.records.encoding import EncodedLine, LineEncoding
from pipeline.operations.streams import newest_schema
from schemas.avro import parse
from schemas.types import RecordType

_FLUSH_WITHIN_S = 30.0


def line_encoding(
    topic: TopicName, key_field: str | None, connections: Connections
) -> LineEncoding:
    """Encoding of JSON lines for a topic, by its newest value schema.

    Args:
        topic: the topic of the records.
        key_field: the field whose text is the key; None: records without a key.
        connections: to the registry.

    Raises:
        SchemaError: the topic has no schema.
        InputError: the schema has no such field.
    """
    latest = newest_schema(topic, connections)
    schema = parse(latest.text)
    names = [f.name for f in schema.root.fields] if isinstance(schema.root, RecordType) else []
    if key_field is not None and key_field not in names:
        raise InputError(
            f"{schema.full_name} has no field {key_field} for the key",
            hint=f"there is: {', '.join(names) or 'no field'}.",
        )
    return LineEncoding(schema, latest.id, key_field)


def send_lines(topic: TopicName, encoded: Iterable[EncodedLine], connections: Connections) -> int:
    """Send records and wait until Kafka has acknowledged all; returns their number.

    Raises:
        UnavailableError, RetryError: Kafka has not acknowledged all of them.
    """
    producer = connections.producer()
    count = 0
    for one in encoded:
        producer.send(topic, one.key, one.value)
        count += 1
    producer.flush(_FLUSH_WITHIN_S)
    return count
