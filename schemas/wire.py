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
from typing import Final
from uuid import UUID

from pipeline.ids import SchemaGuid, SchemaHandle, SchemaId

MAGIC = 0
PREFIX_BYTES = 5
GUID_MAGIC = 1
GUID_PREFIX_BYTES = 17
PREFIXES: Final = {MAGIC: PREFIX_BYTES, GUID_MAGIC: GUID_PREFIX_BYTES}
"""The first byte of each kind of prefix, with how many bytes it has."""
SCHEMA_ID_MAX: Final = 2**31 - 1
"""Registries count in signed numbers of 32 bits; a prefix has room for twice as many."""
_PREFIX = struct.Struct(">bI")


class WireFault(Enum):
    """Why a value is not in the wire format; the value is what people read."""

    EMPTY = "the value is empty"
    NOT_MAGIC = "the value does not begin with the zero byte of the wire format"
    TOO_SHORT = "the value is shorter than the prefix of the wire format"


@dataclass(frozen=True, slots=True)
class Framed:
    """A value in the wire format: the schema it was written with, and its Avro body."""

    schema: SchemaHandle
    body: bytes


class Part(Enum):
    """What of a record is meant; the value is the header that may name its schema."""

    KEY = "__key_schema_id"
    VALUE = "__value_schema_id"


def identified(
    content: bytes | None, headers: Sequence[tuple[str, bytes | None]], part: Part
) -> Framed | WireFault:
    """Take a key or value apart, by its header if that names a schema, else by its own prefix.

    Of several headers of the name the first counts.
    """
    if content is None:
        return WireFault.EMPTY
    told = next((value for name, value in headers if name == part.value), None)
    named = None if told is None else handle(told)
    return split(content) if named is None else Framed(named, content)


def split(value: bytes | None) -> Framed | WireFault:
    """Take a value apart by its prefix. An absent value (a tombstone) counts as empty here."""
    if not value:
        return WireFault.EMPTY
    size = GUID_PREFIX_BYTES if value[0] == GUID_MAGIC else PREFIX_BYTES
    named = handle(value[:size])
    if named is None:
        return WireFault.TOO_SHORT if value[0] == MAGIC else WireFault.NOT_MAGIC
    return Framed(named, value[size:])


def handle(told: bytes) -> SchemaHandle | None:
    """The schema that a prefix names; None: it is no prefix."""
    if len(told) == PREFIX_BYTES and told[0] == MAGIC:
        return SchemaId(_PREFIX.unpack(told)[1])
    if len(told) == GUID_PREFIX_BYTES and told[0] == GUID_MAGIC:
        return SchemaGuid(str(UUID(bytes=told[1:])))
    return None


def prefix(schema: SchemaHandle) -> bytes:
    """The bytes that stand before every body written with a schema: 5, or 17 with a GUID."""
    if isinstance(schema, int):
        return _PREFIX.pack(MAGIC, schema)
    return bytes((GUID_MAGIC,)) + UUID(schema).bytes


def join(schema: SchemaHandle, body: bytes) -> bytes:
    """A body with its prefix."""
    return prefix(schema) + body


def may_exist(schema: SchemaHandle) -> bool:
    """Whether any registry could have a schema.

    Of an id that is too large for them registries do not say that they do not have it, but that
    there is no such place.
    """
    return isinstance(schema, str) or schema <= SCHEMA_ID_MAX


def words(schema: SchemaHandle) -> str:
    """A schema's name for people."""
    return f"id {schema}" if isinstance(schema, int) else f"GUID {schema}"
