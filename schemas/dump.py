"""The file in which the contents of a registry travel: JSON lines; the first says what it is.

docs/reference/schemas.md describes it for other programs. Pure.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.errors import InputError, NewerFormatError
from schemas.entries import SchemaUse, StoredVersion, context_of
from schemas.registry.config import Mode

FORMAT = "medusa-schemas"
FORMAT_VERSION = 1

Scope = str | None
"""A subject, a context as `:.name:`, or None for what holds where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Dump:
    """What was read from a registry.

    Args:
        registry: its address.
        prefix: what the subjects begin with; empty: all were read.
        made_at: when, as a text.
        versions: by subject and version.
        configs: what scopes say themselves, as the registry writes it.
        modes: likewise.
    """

    registry: str
    prefix: str
    made_at: str
    versions: tuple[StoredVersion, ...]
    configs: Mapping[Scope, Mapping[str, Any]] = field(default_factory=dict)
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


def as_json(one: StoredVersion) -> dict[str, Any]:
    """A version under the names that registries use."""
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
    """Read a file.

    Args:
        text: what it holds.
        place: its name, for errors.

    Raises:
        InputError: it is something else, it is cut off, or it contradicts itself.
        NewerFormatError: a newer version of Medusa wrote it.
    """
    rows = [
        (number, _row(line, f"{place}:{number}"))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    head = rows[0][1] if rows else {}
    if head.get("format") != FORMAT or not isinstance(head.get("version"), int):
        hint = "`medusa schema export` writes such a file."
        raise InputError("this is no file of schemas", place=place, hint=hint)
    if head["version"] > FORMAT_VERSION:
        raise NewerFormatError(
            f"the file has format {head['version']}, this program knows {FORMAT_VERSION}",
            place=place,
            hint="use a newer version of Medusa.",
        )
    if head.get("lines") != len(rows) - 1:
        message = f"the file is not whole: {head.get('lines')} lines were written, "
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
    """Takes the lines behind the first, each checked against those before it."""

    def __init__(self) -> None:
        self.versions: dict[SchemaUse, StoredVersion] = {}
        self.configs: dict[Scope, Mapping[str, Any]] = {}
        self.modes: dict[Scope, Mode] = {}
        self._ids: dict[tuple[str, int], StoredVersion] = {}

    def take(self, row: dict[str, Any], place: str) -> None:
        """One line."""
        try:
            match row["kind"]:
                case "version":
                    self._version(_stored(row), place)
                case "config":
                    self.configs[row["scope"]] = dict(row["config"])
                case "mode":
                    self.modes[row["scope"]] = Mode(row["mode"])
                case other:
                    raise InputError(f"a line of the kind {other!r} is not known", place=place)
        except (KeyError, TypeError, ValueError) as error:
            words = f"{type(error).__name__}: {error}"
            raise InputError(
                f"the line does not have what it should: {words}", place=place
            ) from error

    def _version(self, one: StoredVersion, place: str) -> None:
        if one.use in self.versions:
            raise InputError(f"{one.use} stands in the file twice", place=place)
        known = self._ids.setdefault((context_of(one.subject), one.id), one)
        if one.differences(known):
            message = f"id {one.id} is of {known.use}, and of {one.use} with another content"
            raise InputError(message, place=place)
        self.versions[one.use] = one


def _stored(row: dict[str, Any]) -> StoredVersion:
    version, schema_id, text = row["version"], row["id"], row["schema"]
    if not isinstance(version, int) or not isinstance(schema_id, int) or not isinstance(text, str):
        raise TypeError("version and id are numbers, schema is a text")
    found = StoredVersion(
        str(row["subject"]),
        version,
        schema_id,
        text,
        str(row.get("guid") or ""),
        str(row.get("schemaType") or "AVRO"),
        tuple(row.get("references") or ()),
        row.get("metadata"),
        row.get("ruleSet"),
        bool(row.get("deleted")),
    )
    _ = found.referred  # a reference without its parts is found now, at its line
    return found


def _row(line: str, place: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise InputError("the line is not JSON", place=place) from error
    if not isinstance(found, dict):
        raise InputError("the line is no JSON object", place=place)
    return found


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
