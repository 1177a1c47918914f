"""Encoding of records as written, or as expected values; each mistake with its place. Pure."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pipeline.errors import Problem, SchemaError
from pipeline.ids import SchemaId
from pipeline.testing.compare import Expected, as_json
from pipeline.testing.document import Written
from schemas.avro import AvroSchema
from schemas.codec import encode, fields_from_json, from_json, read_container
from schemas.wire import join

AVRO_FILE: Final = ".avro"
_TAILED: Final = frozenset({"topic", "partition", "offset", "timestamp", "key", "value"})


class Schemas:
    """Schemas by the ids that a registry would assign; an id is assigned at first use."""

    def __init__(self) -> None:
        self._ids: dict[str, SchemaId] = {}

    def id_of(self, text: str) -> SchemaId:
        """The id of a schema."""
        return self._ids.setdefault(text, SchemaId(len(self._ids) + 1))


@dataclass(frozen=True, slots=True)
class Line:
    """A JSON record of a file, or of a document, with its place."""

    written: Written
    file: str

    def place(self, path: str = "") -> str:
        """Its place, or that of a part of it."""
        return f"{self.file}:{self.written.line_of(path)}"

    def problem(self, path: str, message: str) -> Problem:
        """A mistake in it."""
        text = f"{path.removeprefix('/')}: {message}" if path.strip("/") else message
        return Problem(text, self.file, self.written.line_of(path))


def json_lines(content: bytes, file: str) -> Iterator[Line | Problem]:
    """The records of a file with one JSON object a line; blank lines are skipped.

    Of the output of `medusa tail -o json`, the values are used.
    """
    for number, line in enumerate(content.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8"), parse_float=Decimal)
        except json.JSONDecodeError as error:
            yield Problem(f"not JSON: {error.msg} (column {error.colno})", file, number)
        except (UnicodeDecodeError, RecursionError, ValueError) as error:
            yield Problem(f"not JSON: {type(error).__name__}", file, number)
        else:
            tailed = isinstance(value, dict) and value.keys() >= _TAILED
            yield Line(Written(value["value"] if tailed else value, number), file)


def encoded(line: Line, schema: AvroSchema, schema_id: SchemaId) -> bytes | Problem:
    """A record in the wire format."""
    try:
        return join(schema_id, encode(schema, from_json(schema, line.written.value)))
    except SchemaError as error:
        return line.problem(error.place, error.message)


def expected(line: Line, schema: AvroSchema) -> Expected | Problem:
    """The expected record, with the values of its named fields."""
    value = line.written.value
    if not isinstance(value, Mapping):
        return line.problem("", "a record is a mapping from fields to values")
    try:
        return Expected(fields_from_json(schema, value), as_json(value), line.place())
    except SchemaError as error:
        return line.problem(error.place, error.message)


def container(content: bytes, file: str) -> tuple[AvroSchema, tuple[Any, ...]] | Problem:
    """The schema and the values of an Avro file."""
    try:
        return read_container(content)
    except SchemaError as error:
        return Problem(error.message, file)


def key_of(line: Line, field: str) -> bytes | Problem:
    """The key from a field: a text unchanged, anything else as JSON."""
    value = line.written.value
    part = value.get(field) if isinstance(value, Mapping) else None
    if part is None:
        return line.problem(f"/{field}", "the key is missing or null")
    text = part if isinstance(part, str) else json.dumps(part, default=str)
    return text.encode("utf-8")
