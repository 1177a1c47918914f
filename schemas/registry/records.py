"""Stored records of the registry: paths and serialisation. Pure.

    <root>/revision            number of steps, and the records that the last ones changed
    <root>/subjects/<name>     the versions of a subject
    <root>/contents/<guid>     a schema with references, metadata and rules, and its ids
    <root>/configs/<name>      the configuration of a scope
    <root>/modes/<name>        the mode of a scope

A name always has its context, `:.:cars-value`. Every value is a JSON object with a format version.
A step changes the revision and all other records atomically, so two servers at the same revision
have the same state.
"""

import json
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from pipeline.errors import BrokenInvariantError, RefusedError
from schemas.json_value import Json, JsonObject, list_of, number_of, object_of, text_of
from schemas.registry.config import Config, changed, config_json, mode_of
from schemas.registry.content import Content, Guid, Reference, content_json
from schemas.registry.metadata import metadata_of, rules_of
from schemas.registry.names import Context, SubjectName
from schemas.registry.state import Change, ConfigPut, ContentPut, ModePut, SubjectPut, Version

FORMAT_VERSION: Final = 1
FOLDERS: Final = ("contents", "subjects", "configs", "modes")
"""In the order in which they are read: contents come before records that refer to them."""
STEPS_MAX: Final = 64
"""Steps whose changes the revision contains; a server that is further behind reads all records."""
STEPS_CHARS_MAX: Final = 50_000
"""Of all paths of these steps: the revision is written with every step, so it must stay small."""
Step: TypeAlias = tuple[int, tuple[str, ...]]
"""The number of a step, and the paths of changed records: `subjects/:.:cars-value`."""


@dataclass(frozen=True, slots=True)
class Revision:
    """Number of steps, and the last of them, oldest first."""

    number: int = 0
    steps: tuple[Step, ...] = ()

    def next(self, places: tuple[str, ...]) -> "Revision":
        """The revision after a step that changes these records."""
        number = self.number + 1
        steps: tuple[Step, ...] = (*self.steps, (number, places))[-STEPS_MAX:]
        while sum(len(place) for _, some in steps for place in some) > STEPS_CHARS_MAX:
            steps = steps[1:]
        return Revision(number, steps)

    def since(self, number: int) -> tuple[str, ...] | None:
        """The records that were changed after a revision; None: its steps are not stored now."""
        if number > self.number or (number < self.number and not self._contains(number + 1)):
            return None
        changed_places = (p for step, places in self.steps if step > number for p in places)
        return tuple(dict.fromkeys(changed_places))

    def _contains(self, number: int) -> bool:
        return bool(self.steps) and self.steps[0][0] <= number


def revision_bytes(revision: Revision) -> bytes:
    """Serialise a revision."""
    return _encode(
        revision=revision.number,
        steps=[[number, list(places)] for number, places in revision.steps],
    )


def revision_of(value: bytes, place: str) -> Revision:
    """Deserialise a revision.

    Raises:
        BrokenInvariantError, RefusedError: as `change_of`.
    """
    found = _decode(value, place)
    steps = tuple(map(_step_of, list_of(found["steps"])))
    return Revision(number_of(found["revision"]), steps)


def _step_of(value: Json) -> Step:
    number, places = list_of(value)
    return number_of(number), tuple(map(text_of, list_of(places)))


def place_of(change: Change) -> str:
    """The path of the record of a change, below the root."""
    match change:
        case ContentPut(guid):
            return f"contents/{guid}"
        case SubjectPut(name):
            return f"subjects/{_node(name)}"
        case ConfigPut(name):
            return f"configs/{_node(name)}"
        case ModePut(name):
            return f"modes/{_node(name)}"


def value_of(change: Change) -> bytes | None:
    """Serialise the record of a change; None: it is deleted."""
    match change:
        case ContentPut(_, content, ids):
            return _encode(
                ids=[[context, number] for context, number in ids], **content_json(content)
            )
        case SubjectPut(_, versions):
            return _encode(versions=[_version_json(one) for one in versions]) if versions else None
        case ConfigPut(_, config):
            return None if config is None else _encode(**config_json(config, "compatibility"))
        case ModePut(_, mode):
            return None if mode is None else _encode(mode=mode.value)


def change_of(place: str, value: bytes | None) -> Change:
    """Deserialise the record at a path.

    Raises:
        BrokenInvariantError: the record is damaged.
        RefusedError: a newer version of Medusa wrote it.
    """
    folder, _, node = place.partition("/")
    found = None if value is None else _decode(value, place)
    try:
        match folder:
            case "contents":
                if found is None:
                    raise BrokenInvariantError("a schema of the registry is gone", place=place)
                ids = tuple(map(_id_of, list_of(found["ids"])))
                return ContentPut(Guid(node), _content_of(found), ids)
            case "subjects":
                versions = list_of(found["versions"]) if found else []
                return SubjectPut(_name_of(node), tuple(map(_version_of, versions)))
            case "configs":
                return ConfigPut(
                    _name_of(node), None if found is None else changed(Config(), found)
                )
            case _:
                return ModePut(_name_of(node), None if found is None else mode_of(found["mode"]))
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenInvariantError("damaged record of the schema registry", place=place) from error


def _node(name: SubjectName) -> str:
    return quote(f":{name.context}:{name.subject}", safe=":")


def _name_of(node: str) -> SubjectName:
    return SubjectName.parse(unquote(node))


def _version_json(version: Version) -> JsonObject:
    made: JsonObject = {"version": version.number, "id": version.id}
    made |= {"guid": version.guid, "at": version.at_ms}
    return {**made, "deleted": True} if version.deleted else made


def _id_of(value: Json) -> tuple[Context, int]:
    context, number = list_of(value)
    return Context(text_of(context)), number_of(number)


def _version_of(value: Json) -> Version:
    found = object_of(value)
    number, at_ms = number_of(found["version"]), number_of(found["at"])
    guid, gone = Guid(text_of(found["guid"])), bool(found.get("deleted"))
    return Version(number, number_of(found["id"]), guid, at_ms, gone)


def _reference_of(value: Json) -> Reference:
    found = object_of(value)
    name, subject = text_of(found["name"]), text_of(found["subject"])
    return Reference(name, subject, number_of(found["version"]))


def _content_of(found: JsonObject) -> Content:
    references = tuple(map(_reference_of, list_of(found.get("references", []))))
    metadata, rules = metadata_of(found.get("metadata")), rules_of(found.get("ruleSet"))
    return Content(text_of(found["schema"]), references, metadata, rules)


def _encode(**values: Json) -> bytes:
    made = {"format": FORMAT_VERSION, **values}
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()


def _decode(value: bytes, place: str) -> JsonObject:
    try:
        decoded = json.loads(value)
    except ValueError as error:
        raise BrokenInvariantError("damaged record of the schema registry", place=place) from error
    if not isinstance(decoded, dict) or not isinstance(decoded.get("format"), int):
        raise BrokenInvariantError("damaged record of the schema registry", place=place)
    if decoded["format"] != FORMAT_VERSION:
        raise RefusedError(
            f"the record has format {decoded['format']}, this program reads {FORMAT_VERSION}",
            place=place,
            hint="run the version of Medusa that wrote it, or a newer one.",
        )
    return decoded
