"""Confluent's wire format: a zero byte, a schema id in four bytes (big-endian), the Avro body.

Splitting never raises: a value that is not in the format is a fact about the record, and what
becomes of it is for the caller to decide.
"""

import struct
from dataclasses import dataclass
from enum import Enum

from pipeline.ids import SchemaId

MAGIC = 0
PREFIX_BYTES = 5
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
