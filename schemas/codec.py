"""Avro codec: encoding and decoding of binary bodies; no other module imports fastavro.

A body follows the prefix of the wire format. Values of logical types are `Decimal`, `UUID`, `date`,
`time`, and `datetime` in UTC. A value of a union with several records or maps may be the pair (full
name of the branch, value). Decoded values must not be modified: defaults are shared.
"""

import io
import struct
from functools import lru_cache
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, decimal_parameters, parse
from schemas.avro_from_json import fields_from_json, from_json
from schemas.avro_to_json import to_json
from schemas.defaults import native_default
from schemas.empty_items import check_empty_items
from schemas.logical import Native
from schemas.types import MISSING, Logical, RecordType

__all__ = ["decode", "encode", "fields_from_json", "from_json", "read_container", "to_json"]

_BAD_VALUE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, struct.error)
_BAD_BODY = (*_BAD_VALUE, EOFError, RecursionError, SchemaResolutionError)
"""Errors that fastavro raises for a value or a body that does not fit; they have no common base."""


def encode(schema: AvroSchema, value: Any) -> bytes:
    """Encode a Python value as an Avro body. Missing fields get their defaults.

    Raises:
        SchemaError: the value does not fit the schema, or has fields that the schema lacks.
    """
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, _driver_schema(schema), value, strict_allow_default=True)
    except _BAD_VALUE as error:
        raise SchemaError(f"the value does not fit {schema.full_name}: {_words(error)}") from error
    return out.getvalue()


def decode(writer: AvroSchema, reader: AvroSchema, body: bytes) -> Any:
    """Decode an Avro body that was written with `writer`, resolved to `reader`.

    Raises:
        SchemaError: the body is corrupt, has bytes left over, declares too many items of an array,
            or cannot be resolved to `reader`.
    """
    check_empty_items(writer, body)
    source = io.BytesIO(body)
    same = writer is reader or writer == reader
    try:
        value = fastavro.schemaless_reader(
            source, _driver_schema(writer), None if same else _driver_schema(reader)
        )
    except _BAD_BODY as error:
        raise SchemaError(f"the bytes are no {writer.full_name}: {_words(error)}") from error
    left = len(body) - source.tell()
    if left:
        raise SchemaError(f"the bytes are no {writer.full_name}: {left} of them are left over")
    return value


def read_container(content: bytes) -> tuple[AvroSchema, tuple[Any, ...]]:
    """Decode an Avro object container file: its schema and values.

    Raises:
        SchemaError: it is no such file, or is corrupt.
    """
    try:
        reader = fastavro.reader(io.BytesIO(content))
        schema = parse(reader.metadata["avro.schema"])
        return schema, tuple(reader)
    except (SchemaParseException, *_BAD_BODY) as error:
        raise SchemaError(f"this is no Avro file: {_words(error)}") from error


def _words(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else ""
    return f"{type(error).__name__}{': ' if text else ''}{text[:200]}"


@lru_cache(maxsize=1024)
def _driver_schema(schema: AvroSchema) -> Any:
    """The parsed form of a schema for fastavro.

    fastavro uses defaults literally, but its parser requires their JSON form: so after the parse
    each default is replaced by its Python value.
    """
    try:
        parsed = fastavro.parse_schema(_without_invalid_decimals(schema.value))
    except (SchemaParseException, *_BAD_VALUE) as error:
        raise SchemaError(f"the schema cannot be used: {_words(error)}") from error
    defaults = {
        (named.name, field.name): native_default(field, schema.names)
        for named in schema.names.values()
        if isinstance(named, RecordType)
        for field in named.fields
        if field.default is not MISSING
    }
    _set_defaults(parsed, defaults)
    return parsed


def _without_invalid_decimals(value: Any) -> Any:
    """The schema without invalid decimals.

    The specification demands that invalid logical types are ignored; fastavro rejects them.
    """
    if isinstance(value, list):
        return [_without_invalid_decimals(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {k: v if k == "default" else _without_invalid_decimals(v) for k, v in value.items()}
    size = value.get("size") if value.get("type") == "fixed" else None
    valid = decimal_parameters(value, size)[0]
    if valid is None and made.get("logicalType") == Logical.DECIMAL.value:
        del made["logicalType"]
    return made


def _set_defaults(parsed: Any, defaults: dict[tuple[str, str], Native]) -> None:
    """Replace the defaults in every record inside a parsed schema, names table included."""
    if isinstance(parsed, list):
        for item in parsed:
            _set_defaults(item, defaults)
    elif isinstance(parsed, dict):
        for field in parsed.get("fields", ()):
            if (parsed.get("name"), field["name"]) in defaults:
                field["default"] = defaults[parsed["name"], field["name"]]
            _set_defaults(field["type"], defaults)
        for key in ("items", "values", "type"):
            _set_defaults(parsed.get(key), defaults)
        for named in parsed.get("__named_schemas", {}).values():
            _set_defaults(named, defaults)
