"""Options of the connectors of files, checked. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pipeline import durations
from pipeline.errors import InputError
from schemas.json_value import Json, JsonObject

JSON_LINES, CSV, PARQUET = "jsonl", "csv", "parquet"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Options of a source.

    Args:
        folder: as in the document.
        pattern: of the names of files that are read.
        format: `JSON_LINES` or `CSV`, whose first line names its columns.
        delimiter: of CSV.
        encoding: of the text.
        settled_ms: a last line without an end is read when its file was not changed for so long.
    """

    folder: str
    pattern: str
    format: str
    delimiter: str = ","
    encoding: str = "utf-8"
    settled_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Options of a sink: the folder as in the document, and `JSON_LINES` or `PARQUET`."""

    folder: str
    format: str


def source_options(given: JsonObject) -> SourceOptions:
    """Check the options of a source.

    Raises:
        InputError: an option is missing, unknown or wrong.
    """
    found = _checked(
        given,
        {
            "folder": _text,
            "pattern": _text,
            "format": _one_of(JSON_LINES, CSV),
            "delimiter": _character,
            "encoding": _encoding,
            "settled": _duration,
        },
        required=("folder", "pattern", "format"),
    )
    if "settled" in found:
        found["settled_ms"] = found.pop("settled")
    return SourceOptions(**found)


def sink_options(given: JsonObject) -> SinkOptions:
    """Check the options of a sink.

    Raises:
        InputError: an option is missing, unknown or wrong.
    """
    known = {"folder": _text, "format": _one_of(JSON_LINES, PARQUET)}
    return SinkOptions(**_checked(given, known, required=("folder", "format")))


Check = Callable[[Json], Any]
"""Returns the value of an option, or raises `ValueError` with what was expected."""


def _checked(
    given: JsonObject, known: dict[str, Check], *, required: tuple[str, ...]
) -> dict[str, Any]:
    for name in given:
        if name not in known:
            raise InputError(
                "there is no such option", place=name, hint=f"there is: {', '.join(known)}."
            )
    for name in required:
        if name not in given:
            raise InputError("this option is missing", place=name)
    found = {}
    for name, value in given.items():
        try:
            found[name] = known[name](value)
        except (ValueError, InputError) as error:
            raise InputError(f"{value!r} is not {error}", place=name) from error
    return found


def _text(value: Json) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("a text")
    return value


def _character(value: Json) -> str:
    if not isinstance(value, str) or len(value) != 1 or value in '"\r\n':
        raise ValueError("one character, and neither a quote nor the end of a line")
    return value


def _encoding(value: Json) -> str:
    # Others have line ends that are not the byte 10, or lines that begin with one.
    known = ("utf-8", "latin-1", "cp1252", "ascii")
    if value not in known:
        raise ValueError(f"one of {', '.join(known)}")
    return str(value)


def _duration(value: Json) -> int:
    try:
        return durations.parse(value if isinstance(value, str) else "")
    except Exception as error:
        raise ValueError("a duration, such as 10s") from error


def _one_of(*words: str) -> Check:
    def check(value: Json) -> str:
        if value not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return str(value)

    return check
