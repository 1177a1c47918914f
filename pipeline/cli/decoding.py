"""Records as data for people: Avro by the registry's schemas, what is not Avro as far as it goes.

A value that cannot be decoded does not end a `tail`: it is shown as base64 with the reason.
"""

import base64
from dataclasses import dataclass
from typing import Any, Protocol

from brokers.records import KafkaRecord
from pipeline.clock import rfc3339
from pipeline.errors import SchemaError
from pipeline.ids import SchemaHandle
from schemas.avro import AvroSchema
from schemas.codec import decode, to_json
from schemas.wire import Part, WireFault, identified, words


class SchemaFinder(Protocol):
    """What decoding needs of a registry client."""

    def schema_of(self, handle: SchemaHandle) -> AvroSchema | None:
        """The schema that a record names; None if the registry has none."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A record for printing: plain data; `problem` says why a value is shown as base64."""

    data: dict[str, Any]
    problem: str


def decoded(record: KafkaRecord, registry: SchemaFinder) -> Decoded:
    """Decode key and value of a record.

    Raises:
        UnavailableError: the registry does not answer.
    """
    key, key_problem = _content(record, Part.KEY, registry)
    value, value_problem = _content(record, Part.VALUE, registry)
    problem = value_problem or key_problem
    data = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": rfc3339(record.timestamp_ms) if record.timestamp_ms >= 0 else None,
        "key": key,
        "value": value,
    }
    if record.headers:
        data["headers"] = _headers(record.headers)
    if problem:
        data["problem"] = problem
    return Decoded(data, problem)


def _headers(headers: tuple[tuple[str, bytes | None], ...]) -> dict[str, Any]:
    """Text by name; of a name that is repeated, all of them in their order."""
    found: dict[str, list[str | None]] = {}
    for name, part in headers:
        found.setdefault(name, []).append(_text(part))
    return {name: parts if len(parts) > 1 else parts[0] for name, parts in found.items()}


def _content(record: KafkaRecord, part: Part, registry: SchemaFinder) -> tuple[Any, str]:
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
