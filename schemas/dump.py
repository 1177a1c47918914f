"""Export file of a registry: JSON lines, the first with format and version.

docs/reference/schemas.md specifies it for other programs. Pure.
"""

import json
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.errors import InputError, NewerFormatError
from schemas.entries import SchemaUse, StoredVersion, context_of, stored
from schemas.json_value import Json, JsonObject
from schemas.outside import of_type, read_json
from schemas.registry.config import Mode
from schemas.wire import SCHEMA_ID_MAX

FORMAT = "medusa-schemas"
FORMAT_VERSION = 1

Scope = str | None
"""A subject, a context as `:.name:`, or None for the whole registry."""


@dataclass(frozen=True, slots=True)
class Dump:
    """The exported content of a registry.

    Args:
        registry: its address.
        prefix: the prefix of the subjects; empty: all were exported.
        made_at: time of the export, as a text.
        versions: by subject and version.
        configs: the configurations of scopes themselves, in the registry's JSON.
        modes: the modes of scopes themselves.
    """

    registry: str
    prefix: str
    made_at: str
    versions: tuple[StoredVersion, ...]
    configs: Mapping[Scope, JsonObject] = field(default_factory=dict)
    modes: Mapping[Scope, Mode] = field(default_factory=dict)


def lines(dump: Dump) -> Iterator[str]:
    """The lines of the file, without their ends."""
    yield _json(
        {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "made_at": dump.made_at,
            "registry": dump.registry,
            "prefix": dump.prefix,
            "lines": len(dump.versions) + len(dump.configs) + len(dump.modes),
        }
    )
    for scope, config in dump.configs.items():
        yield _json({"kind": "config", "scope": scope, "config": config})
    for scope, mode in dump.modes.items():
        yield _json({"kind": "mode", "scope": scope, "mode": mode.value})
    for one in dump.versions:
        yield _json({"kind": "version", **as_json(one)})


def as_json(one: StoredVersion) -> JsonObject:
    """A version in the JSON of registries."""
    return {
        "subject": one.subject,
        "version": one.version,
        "id": one.id,
        "guid": one.guid or None,
        "schemaType": one.kind,
        "schema": one.text,
        "references": [dict(reference) for reference in one.references],
        "metadata": one.metadata,
        "ruleSet": one.rule_set,
        "deleted": one.deleted,
    }


def loads(text: str, place: str) -> Dump:
    """Parse an export file.

    Args:
        text: its content.
        place: its name, for errors.

    Raises:
        InputError: it has another format, is truncated, or is inconsistent.
        NewerFormatError: a newer version of Medusa wrote it.
    """
    rows = [
        (number, _row(line, f"{place}:{number}"))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    head = rows[0][1] if rows else {}
    version, whole = head.get("version"), head.get("lines")
    if head.get("format") != FORMAT or not isinstance(version, int) or isinstance(version, bool):
        hint = "`medusa schema export` writes such a file."
        raise InputError("this is no file of schemas", place=place, hint=hint)
    if version > FORMAT_VERSION:
        raise NewerFormatError(
            f"the file has format {version}, this program reads {FORMAT_VERSION}",
            place=place,
            hint="use a newer version of Medusa.",
        )
    if not of_type(whole, int) or whole != len(rows) - 1:
        message = f"the file is not whole: {whole} lines were written, "
        raise InputError(f"{message}{len(rows) - 1} are here", place=place, hint="export again.")
    reader = _Reader()
    for number, row in rows[1:]:
        reader.take(row, f"{place}:{number}")
    return Dump(
        str(head.get("registry", "")),
        str(head.get("prefix", "")),
        str(head.get("made_at", "")),
        tuple(reader.versions.values()),
        reader.configs,
        reader.modes,
    )


class _Reader:
    """Reads the lines after the first, each checked against those before it."""

    def __init__(self) -> None:
        self.versions: dict[SchemaUse, StoredVersion] = {}
        self.configs: dict[Scope, JsonObject] = {}
        self.modes: dict[Scope, Mode] = {}
        self._ids: dict[tuple[str, int], StoredVersion] = {}

    def take(self, row: JsonObject, place: str) -> None:
        """Read one line."""
        try:
            match row["kind"]:
                case "version":
                    self._version(_version(row, place), place)
                case "config":
                    self.configs[_scope(row, place)] = _object(row, "config", place)
                case "mode":
                    self.modes[_scope(row, place)] = Mode(_text(row, "mode", place))
                case other:
                    raise InputError(f"a line of the kind {other!r} is not known", place=place)
        except KeyError as error:
            message = f"the line does not have what it should: {error}"
            raise InputError(message, place=place) from error
        except ValueError as error:
            raise InputError(str(error), place=place) from error

    def _version(self, one: StoredVersion, place: str) -> None:
        if one.use in self.versions:
            raise InputError(f"{one.use} is in the file twice", place=place)
        known = self._ids.setdefault((context_of(one.subject), one.id), one)
        if one.differences(known):
            message = f"id {one.id} is of {known.use}, and of {one.use} with another content"
            raise InputError(message, place=place)
        self.versions[one.use] = one


def _version(row: JsonObject, place: str) -> StoredVersion:
    use = SchemaUse(_name(row["subject"], "subject", place), _number(row, "version", place))
    _text(row, "schema", place)
    return stored(row, use, _number(row, "id", place), place)


def _scope(row: JsonObject, place: str) -> Scope:
    return None if row["scope"] is None else _name(row["scope"], "scope", place)


def _name(value: Json, what: str, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(what, value, "a name", place)
    return value


def _number(row: JsonObject, what: str, place: str) -> int:
    """Read an id or a version; the range is that of registries."""
    value = row[what]
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= SCHEMA_ID_MAX:
        raise _wrong(what, value, f"a number from 1 to {SCHEMA_ID_MAX}", place)
    return value


def _object(row: JsonObject, what: str, place: str) -> JsonObject:
    value = row[what]
    if not isinstance(value, dict):
        raise _wrong(what, value, "an object", place)
    return value


def _text(row: JsonObject, what: str, place: str) -> str:
    value = row[what]
    if not isinstance(value, str):
        raise _wrong(what, value, "a text", place)
    return value


def _wrong(what: str, value: Json, expected: str, place: str) -> InputError:
    return InputError(f"{what} should be {expected}, not {reprlib.repr(value)}", place=place)


def _row(line: str, place: str) -> JsonObject:
    try:
        found = read_json(line)
    except ValueError as error:
        raise InputError(f"the line is {error}", place=place) from error
    if not isinstance(found, dict):
        raise InputError("the line is no JSON object", place=place)
    return found


def _json(value: Mapping[str, Json]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
