"""Encoding of JSON lines as Avro records. Pure."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from pipeline.errors import SchemaError
from pipeline.ids import SchemaId
from schemas.avro import AvroSchema
from schemas.codec import encode, from_json
from schemas.logical import Native
from schemas.wire import join


@dataclass(frozen=True, slots=True)
class EncodedLine:
    """An encoded line. Line numbers start at 1."""

    line: int
    key: bytes | None
    value: bytes


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be encoded, with the reason; `path` is the place inside the value."""

    line: int
    path: str
    message: str

    def __str__(self) -> str:
        where = f"line {self.line}, {self.path}" if self.path else f"line {self.line}"
        return f"{where}: {self.message}"


@dataclass(frozen=True, slots=True)
class LineEncoding:
    """Settings of the encoding: the schema, its id, and the key field; None: no key."""

    schema: AvroSchema
    schema_id: SchemaId
    key_field: str | None = None


def encode_lines(lines: Iterable[bytes], encoding: LineEncoding) -> Iterator[EncodedLine | BadLine]:
    """Encode each line that is not blank, or return its error."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _encode(number, line, encoding)


def _encode(number: int, line: bytes, encoding: LineEncoding) -> EncodedLine | BadLine:
    try:
        given = json.loads(line.decode("utf-8").strip(), parse_float=Decimal)
    except json.JSONDecodeError as error:
        return BadLine(number, "", f"not JSON: {error.msg} (column {error.colno})")
    except UnicodeDecodeError:
        return BadLine(number, "", "not UTF-8 text")
    except (RecursionError, ValueError) as error:
        return BadLine(number, "", f"not JSON of reasonable size: {type(error).__name__}")
    try:
        body = encode(encoding.schema, from_json(encoding.schema, given))
    except SchemaError as error:
        return BadLine(number, error.place, error.message)
    key = None
    if encoding.key_field is not None:
        if not isinstance(given, dict) or given.get(encoding.key_field) is None:
            return BadLine(number, f"/{encoding.key_field}", "the key is missing or null")
        key = _key(given[encoding.key_field])
    return EncodedLine(number, key, join(encoding.schema_id, body))


def _key(value: Native) -> bytes:
    """The key as text: a string as it is, anything else as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text.encode("utf-8")
