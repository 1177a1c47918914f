"""The document of one connector, for running it by hand. Pure."""

import re
from dataclasses import dataclass, field

import yaml

from connectors.running.pace import Rates
from connectors.source import Limit
from pipeline.errors import InputError
from pipeline.ids import ConnectorName, TopicName
from pipeline.names import NAME_PATTERN
from schemas.json_value import Json, JsonObject

RECORDS, SIZE_BYTES = 5_000, 4_000_000
_KEYS = ("connector", "source", "sink", "topic", "schema", "key", "round", "rate")


@dataclass(frozen=True, slots=True)
class Document:
    """A connector.

    Args:
        name: of the connector.
        source: whether it is a source; else it is a sink.
        kind: of the connector.
        options: of the kind.
        topic: that is written, or read.
        schema: the file with the schema of a source; None: it is not known yet.
        key: the field of a source that is the key of its records; None: none.
        limit: of a round.
        rates: bounds of the speed.
    """

    name: ConnectorName
    source: bool
    kind: str
    options: JsonObject
    topic: TopicName
    schema: str | None = None
    key: str | None = None
    limit: Limit = field(default_factory=lambda: Limit(RECORDS, SIZE_BYTES))
    rates: Rates = field(default_factory=Rates)


def parse(text: str, file: str) -> Document:
    """Read a document.

    Args:
        text: YAML.
        file: its name, for errors.

    Raises:
        InputError: something is missing, unknown or wrong.
    """
    found = _keys(text, file)
    ends = [key for key in ("source", "sink") if key in found]
    if len(ends) != 1:
        raise InputError("a connector has either a source or a sink", place=file)
    (end,) = ends
    options = found[end]
    if not isinstance(options, dict):
        raise InputError("these are no options", place=f"{file}: {end}")
    name = _text(found, "connector", file)
    if not re.fullmatch(NAME_PATTERN, name):
        message = "a name has lower-case letters, digits and underscores, and begins with a letter"
        raise InputError(message, place=f"{file}: connector")
    if end == "sink":
        for key in ("schema", "key"):
            if key in found:
                raise InputError("only a source has this", place=f"{file}: {key}")
    return Document(
        name=ConnectorName(name),
        source=end == "source",
        kind=_text(options, "kind", f"{file}: {end}"),
        options={key: value for key, value in options.items() if key != "kind"},
        topic=TopicName(_text(found, "topic", file)),
        schema=_text(found, "schema", file) if "schema" in found else None,
        key=_text(found, "key", file) if "key" in found else None,
        limit=_limit(found.get("round", {}), f"{file}: round"),
        rates=_rates(found.get("rate", {}), f"{file}: rate"),
    )


def _keys(text: str, file: str) -> JsonObject:
    """The keys of a document, with their values."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"this is no YAML: {' '.join(str(error).split())}", place=file) from error
    if not isinstance(found, dict):
        raise InputError("the document of a connector has keys and values", place=file)
    for key in found:
        if key not in _KEYS:
            hint = f"there is: {', '.join(_KEYS)}."
            raise InputError("there is no such key", place=f"{file}: {key}", hint=hint)
    return found


def _text(found: JsonObject, key: str, place: str) -> str:
    value = found.get(key)
    if not isinstance(value, str) or not value:
        raise InputError("a text is missing here", place=f"{place}: {key}")
    return value


def _limit(given: Json, place: str) -> Limit:
    numbers = _numbers(given, place)
    return Limit(int(numbers.get("records", RECORDS)), int(numbers.get("bytes", SIZE_BYTES)))


def _rates(given: Json, place: str) -> Rates:
    numbers = _numbers(given, place)
    return Rates(numbers.get("records"), numbers.get("bytes"))


def _numbers(given: Json, place: str) -> dict[str, float]:
    """The numbers of `records` and `bytes`, as far as they are given."""
    if not isinstance(given, dict) or set(given) - {"records", "bytes"}:
        raise InputError("this has records and bytes, or one of them", place=place)
    found: dict[str, float] = {}
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
            raise InputError(f"{value!r} is no number above 0", place=f"{place}: {key}")
        found[key] = float(value)
    return found
