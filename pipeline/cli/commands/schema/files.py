"""Schema files of the command line, read with the types that they refer to."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import InputError, SchemaError
from pipeline.operations.schemas.references import ReadSchema, TypeReference, read_schema
from schemas.avro import UnknownTypeError, parse
from schemas.client import RegistryClient


@dataclass(frozen=True, slots=True)
class SchemaFile:
    """Schema file; it is validated when it is opened, unless it has type references.

    Args:
        name: of the file, `-` for stdin.
        text: content of the file.
        type_references: types of other subjects.
    """

    name: str
    text: str
    type_references: tuple[TypeReference, ...]

    def read(self, registry: RegistryClient, subject: str) -> ReadSchema:
        """The schema with its references resolved; raises as `read_schema` does."""
        return read_schema(self.text, self.type_references, self.name, registry, subject)


def open_schema(file: str, type_references: tuple[TypeReference, ...]) -> SchemaFile:
    """Schema file, `-` for stdin; validated at once if no registry is necessary for it.

    Raises:
        InputError: the file cannot be read.
        SchemaError: it is not a schema; the place contains the file and the path inside it.
    """
    text = _text(file)
    if not type_references:
        _require_schema(file, text)
    return SchemaFile(file, text, type_references)


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
