"""Schema files and subjects as people name them."""

import sys
from pathlib import Path

from pipeline.errors import InputError, SchemaError
from schemas.avro import parse


def read_schema(file: str) -> str:
    """The text of a schema file, `-` for stdin, checked to be an Avro schema.

    Raises:
        InputError: it cannot be read.
        SchemaError: it is no schema; the place names the file and the path inside it.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"the file cannot be read: {error.strerror}", place=file) from error
    except UnicodeDecodeError as error:
        raise InputError("the file is not UTF-8 text", place=file) from error
    try:
        parse(text)
    except SchemaError as error:
        raise SchemaError(error.message, place=f"{file}, {error.place}", hint=error.hint) from error
    return text
