"""Confluent's wire format: a zero byte, a schema id in four bytes (big-endian), the Avro body.

Newer writers may name the schema by its GUID instead: a byte 1 and the GUID's 16 bytes. Either may
stand in a header of the record, `__key_schema_id` or `__value_schema_id`; then the body is alone.

Splitting never raises: a value that is not in the format is a fact about the record, and what
becomes of it is for the caller to decide.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from uuid import UUID

from pipeline.ids import SchemaId

MAGIC = 0
PREFIX_BYTES = 5
GUID_MAGIC = 1
GUID_PREFIX_BYTES = 17
_PREFIX = struct.Struct(">bI")


class WireFault(Enum):
    """Why a value is not in the wire format; the value is what people read."""

    EMPTY = "the value is empty"
    NOT_MAGIC = "the value does not begin with the zero byte of the wire format"
    TOO_SHORT = "the value is shorter than the prefix of the wire format"


@dataclass(frozen=True, slots=True)
class Framed:
    """A value in the wire format."""

    schema_id: SchemaId
    body: bytes


@dataclass(frozen=True, slots=True)
class FramedByGuid:
    """A value whose writer named the schema by its GUID: lower-case hex in the groups of a UUID."""

    guid: str
    body: bytes


class Part(Enum):
    """What of a record is meant; the value is the header that may name its schema."""

    KEY = "__key_schema_id"
    VALUE = "__value_schema_id"


def identified(
    content: bytes | None, headers: Sequence[tuple[str, bytes | None]], part: Part
) -> Framed | FramedByGuid | WireFault:
    """Take a key or value apart, by its header if that names a schema, else by its own prefix."""
    for name, told in headers:
        if name == part.value:
            named = _named(told or b"", content or b"")
            if named is not None:
                return named
    if content and content[0] == GUID_MAGIC and len(content) >= GUID_PREFIX_BYTES:
        return _by_guid(content[:GUID_PREFIX_BYTES], content[GUID_PREFIX_BYTES:])
    return split(content)


def _named(told: bytes, body: bytes) -> Framed | FramedByGuid | None:
    """What a header names; None: nothing that can be understood."""
    if len(told) == GUID_PREFIX_BYTES and told[0] == GUID_MAGIC:
        return _by_guid(told, body)
    if len(told) == PREFIX_BYTES and told[0] == MAGIC:
        return Framed(SchemaId(_PREFIX.unpack(told)[1]), body)
    return None


def _by_guid(prefix_bytes: bytes, body: bytes) -> FramedByGuid:
    return FramedByGuid(str(UUID(bytes=prefix_bytes[1:])), body)


def split(value: bytes | None) -> Framed | WireFault:
    """Take a value apart. An absent value (a tombstone) counts as empty here."""
    if not value:
        return WireFault.EMPTY
    if value[0] != MAGIC:
        return WireFault.NOT_MAGIC
    if len(value) < PREFIX_BYTES:
        return WireFault.TOO_SHORT
    _, schema_id = _PREFIX.unpack_from(value)
    return Framed(SchemaId(schema_id), value[PREFIX_BYTES:])


def prefix(schema_id: SchemaId) -> bytes:
    """The five bytes that stand before every body written with a schema."""
    return _PREFIX.pack(MAGIC, schema_id)


def join(schema_id: SchemaId, body: bytes) -> bytes:
    """A body with its prefix."""
    return prefix(schema_id) + body
