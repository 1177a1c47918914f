"""Schema files as people name them, and what is made of them with what they refer to."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError, SchemaError
from pipeline.operations.schemas.references import ReadSchema, TypeReference, read_schema
from schemas.avro import UnknownTypeError, parse
from schemas.client import RegistryClient


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """A file of which it is known that it holds a schema, unless that uses others.

    Args:
        name: of the file, `-` for stdin.
        text: what is in it.
        wanted: the others.
    """

    name: str
    text: str
    wanted: tuple[TypeReference, ...]

    def read(self, registry: RegistryClient, subject: str) -> ReadSchema:
        """The schema with what it refers to; raises as `read_schema` does."""
        return read_schema(self.text, self.wanted, self.name, registry, subject)


def open_schema(file: str, wanted: tuple[TypeReference, ...]) -> SchemaFile:
    """A schema file, `-` for stdin; it is checked at once where no registry is needed for it.

    Raises:
        InputError: it cannot be read.
        SchemaError: it is no schema; the place names the file and the path inside it.
    """
    text = _text(file)
    if not wanted:
        _require_schema(file, text)
    return SchemaFile(file, text, wanted)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=file) from error
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", place=file) from error


def _require_schema(file: str, text: str) -> None:
    try:
        parse(text)
    except SchemaError as error:
        hint = error.hint
        if isinstance(error, UnknownTypeError):
            hint = "if another subject defines it, name that: `--reference SUBJECT:VERSION`."
        raise SchemaError(error.message, place=f"{file}, {error.place}", hint=hint) from error
