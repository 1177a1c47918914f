"""Confluent's wire format: a zero byte, a schema id in four bytes (big-endian), the Avro body.

Newer writers may use the GUID of the schema instead: a byte 1 and the GUID's 16 bytes. Either may
be in a header of the record, `__key_schema_id` or `__value_schema_id`; then the body has no prefix.

Splitting never raises: for a value that is not in the format it returns a `WireFault`, and the
caller decides.
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
"""The first byte of each kind of prefix, with its size in bytes."""
SCHEMA_ID_MAX: Final = 2**31 - 1
"""Ids of registries are signed 32-bit numbers; a prefix has 32 bits without a sign."""
_PREFIX = struct.Struct(">bI")


class WireFault(Enum):
    """Why a value is not in the wire format; the value is the message for users."""

    EMPTY = "the value is empty"
    NOT_MAGIC = "the value does not begin with the zero byte of the wire format"
    TOO_SHORT = "the value is shorter than the prefix of the wire format"


@dataclass(frozen=True, slots=True)
class Framed:
    """A value in the wire format: the handle of its schema, and its Avro body."""

    schema: SchemaHandle
    body: bytes


class Part(Enum):
    """Key or value of a record; the value is the name of the header with its schema's handle."""

    KEY = "__key_schema_id"
    VALUE = "__value_schema_id"


def identified(
    content: bytes | None, headers: Sequence[tuple[str, bytes | None]], part: Part
) -> Framed | WireFault:
    """Split a key or value, by its header if that has a schema's handle, else by its own prefix.

    Of several headers of the name the first is used.
    """
    if content is None:
        return WireFault.EMPTY
    header = next((value for name, value in headers if name == part.value), None)
    named = None if header is None else handle(header)
    return split(content) if named is None else Framed(named, content)


def split(value: bytes | None) -> Framed | WireFault:
    """Split a value by its prefix. An absent value (a tombstone) is treated as empty."""
    if not value:
        return WireFault.EMPTY
    size = GUID_PREFIX_BYTES if value[0] == GUID_MAGIC else PREFIX_BYTES
    named = handle(value[:size])
    if named is None:
        return WireFault.TOO_SHORT if value[0] == MAGIC else WireFault.NOT_MAGIC
    return Framed(named, value[size:])


def handle(encoded: bytes) -> SchemaHandle | None:
    """Decode the handle in a prefix; None: it is no prefix."""
    if len(encoded) == PREFIX_BYTES and encoded[0] == MAGIC:
        return SchemaId(_PREFIX.unpack(encoded)[1])
    if len(encoded) == GUID_PREFIX_BYTES and encoded[0] == GUID_MAGIC:
        return SchemaGuid(str(UUID(bytes=encoded[1:])))
    return None


def prefix(schema: SchemaHandle) -> bytes:
    """The prefix of bodies written with a schema: 5 bytes, or 17 with a GUID."""
    if isinstance(schema, int):
        return _PREFIX.pack(MAGIC, schema)
    return bytes((GUID_MAGIC,)) + UUID(schema).bytes


def join(schema: SchemaHandle, body: bytes) -> bytes:
    """A body with its prefix."""
    return prefix(schema) + body


def may_exist(schema: SchemaHandle) -> bool:
    """Whether a registry could have a schema.

    For an id that is out of range registries do not answer that the schema does not exist, but that
    the route does not.
    """
    return isinstance(schema, str) or schema <= SCHEMA_ID_MAX


def words(schema: SchemaHandle) -> str:
    """A handle as text for users."""
    return f"id {schema}" if isinstance(schema, int) else f"GUID {schema}"
