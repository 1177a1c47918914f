"""Options of the connectors of files, checked. Pure."""

from dataclasses import dataclass

from connectors.options import checked, duration, one_of, text
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
    found = checked(
        given,
        {
            "folder": text,
            "pattern": text,
            "format": one_of(JSON_LINES, CSV),
            "delimiter": _character,
            "encoding": _encoding,
            "settled": duration,
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
    known = {"folder": text, "format": one_of(JSON_LINES, PARQUET)}
    return SinkOptions(**checked(given, known, required=("folder", "format")))


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
