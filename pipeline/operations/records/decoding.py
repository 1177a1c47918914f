"""Decoding of records: Avro by the registry's schemas, keys as text, else base64. Pure.

A value that cannot be decoded raises nothing: it is base64, with the reason in `problem`.
"""

import base64
from dataclasses import dataclass
from typing import Protocol

from brokers.records import KafkaRecord
from pipeline.errors import SchemaError
from pipeline.ids import SchemaHandle
from schemas.avro import AvroSchema
from schemas.codec import decode, to_json
from schemas.json_value import Json, JsonObject
from schemas.wire import Part, WireFault, identified, words


class SchemaFinder(Protocol):
    """Schema lookup: the part of a registry client that decoding needs."""

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The schema of a handle; None if the registry has none."""


@dataclass(frozen=True, slots=True)
class DecodedRecord:
    """A record with key and value as JSON.

    Args:
        record: the record in Kafka.
        key: decoded; text where it is not Avro.
        value: decoded; base64 where that failed.
        problem: why value or key could not be decoded, or a column not computed; "" for none.
    """

    record: KafkaRecord
    key: Json
    value: Json
    problem: str

    @property
    def headers(self) -> JsonObject:
        """Name → text; for a repeated name, all its texts in order."""
        found: dict[str, list[Json]] = {}
        for name, part in self.record.headers:
            found.setdefault(name, []).append(_text(part))
        return {name: parts if len(parts) > 1 else parts[0] for name, parts in found.items()}


def decode_record(record: KafkaRecord, registry: SchemaFinder) -> DecodedRecord:
    """Decode key and value of a record with the schemas of their handles."""
    key, key_problem = _content(record, Part.KEY, registry)
    value, value_problem = _content(record, Part.VALUE, registry)
    return DecodedRecord(record, key, value, value_problem or key_problem)


def _content(record: KafkaRecord, part: Part, registry: SchemaFinder) -> tuple[Json, str]:
    """A key or value, and why it could not be decoded; keys may be plain text as well."""
    content = record.key if part is Part.KEY else record.value
    if content is None:
        return None, ""
    framed = identified(content, record.headers, part)
    if isinstance(framed, WireFault):
        return (_text(content), "") if part is Part.KEY else (_base64(content), framed.value)
    schema = registry.schema_of(framed.schema)
    if schema is None:
        return _base64(content), f"the registry has no schema with {words(framed.schema)}"
    try:
        return to_json(schema, decode(schema, schema, framed.body)), ""
    except SchemaError as error:
        return _base64(content), error.message


def _text(content: bytes | None) -> str | None:
    if content is None:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return _base64(content)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
