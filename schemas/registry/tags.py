"""Tags of records and fields in the text of a schema. Pure.

Tags are in the attribute `confluent:tags`, so they are part of the text, and other tags make
another schema. An entity with tags is identified by its path: `n.Car`, `n.Car.plate`; a path
without a namespace refers to the first entity of that name.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from schemas.json_value import Json, JsonObject, list_of, object_of, text_of
from schemas.naming import qualified
from schemas.registry.java_text import canonical_text
from schemas.registry.refused import BadSchemaError

ATTRIBUTE: Final = "confluent:tags"
RECORD: Final = "sr_record"
FIELD: Final = "sr_field"


@dataclass(frozen=True, slots=True)
class Entity:
    """A record or field, which can have tags.

    Args:
        kind: `RECORD` or `FIELD`.
        path: the full name of a record; for a field followed by its name.
    """

    kind: str
    path: str

    @property
    def short(self) -> "Entity":
        """The same without the namespace, which is optional in requests."""
        steps = self.path.split(".")
        return Entity(self.kind, ".".join(steps[-1 if self.kind == RECORD else -2 :]))


Tags: TypeAlias = tuple[tuple[Entity, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class TagChange:
    """Changes of the tags of a schema at its registration.

    Args:
        add: tags to add.
        remove: tags to remove.
        propagate: whether to add those of the previous version.
    """

    add: Tags = ()
    remove: Tags = ()
    propagate: bool = False


NO_CHANGE: Final = TagChange()


def tags_in(value: Json) -> Tags:
    """The entities with tags in a schema's JSON value, and their tags."""
    return tuple((entity, tags) for entity, node in _entities(value, "") if (tags := _tags(node)))


def with_tags(text: str, add: Tags, remove: Tags = ()) -> str:
    """Change the tags in the text of a valid schema.

    Raises:
        BadSchemaError: a path does not exist in it.
    """
    value = json.loads(text)
    everything: dict[Entity, JsonObject] = {}
    for entity, node in _entities(value, ""):
        everything.setdefault(entity, node)
        everything.setdefault(entity.short, node)
    for changes, adding in ((add, True), (remove, False)):
        for target, tags in _together(changes).items():
            if target not in everything:
                raise BadSchemaError(f"No matching path '{target.path}' found in the schema")
            node = everything[target]
            before = _tags(node)
            left = [*before, *tags] if adding else [one for one in before if one not in tags]
            _put(node, tuple(dict.fromkeys(left)))
    return canonical_text(value)


def _together(changes: Tags) -> dict[Entity, dict[str, None]]:
    """Group changes by entity, with all its tags in their order."""
    found: dict[Entity, dict[str, None]] = {}
    for target, tags in changes:
        found.setdefault(target, {}).update(dict.fromkeys(tags))
    return found


def with_tags_of(text: str, before: Tags) -> str:
    """The text of a schema with the tags of another one, on entities that both have."""
    entities = {entity for entity, _ in _entities(json.loads(text), "")}
    return with_tags(text, tuple(one for one in before if one[0] in entities))


def _entities(value: Json, space: str) -> Iterator[tuple[Entity, JsonObject]]:
    """All entities and their JSON objects, in the order of the text."""
    if isinstance(value, list):
        for branch in value:
            yield from _entities(branch, space)
        return
    if not isinstance(value, dict):
        return
    word = value["type"]
    if word in {"array", "map"}:
        yield from _entities(value["items" if word == "array" else "values"], space)
    elif word in {"record", "error"}:
        full = qualified(text_of(value["name"]), text_of(value.get("namespace", space)))
        yield Entity(RECORD, full), value
        for field in map(object_of, list_of(value["fields"])):
            yield Entity(FIELD, f"{full}.{field['name']}"), field
            yield from _entities(field["type"], full.rpartition(".")[0])


def _tags(node: JsonObject) -> tuple[str, ...]:
    given = node.get(ATTRIBUTE)
    listed: Sequence[Json] = given if isinstance(given, list) else ()
    texts = (one if isinstance(one, str) else json.dumps(one) for one in listed)
    return tuple(dict.fromkeys(texts))


def _put(node: JsonObject, tags: tuple[str, ...]) -> None:
    if tags:
        node[ATTRIBUTE] = list(tags)
    else:
        node.pop(ATTRIBUTE, None)
