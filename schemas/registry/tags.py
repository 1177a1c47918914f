"""Tags inside the text of a schema: on records and on their fields. Pure.

A tag stands in the attribute `confluent:tags`, so it is part of the text, and another tag makes
another schema. What carries one is named by its path: `n.Car`, `n.Car.plate`; without a namespace
the first of that name is meant.
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
    """What can carry tags.

    Args:
        kind: `RECORD` or `FIELD`.
        path: the full name of a record; for a field with its name behind that.
    """

    kind: str
    path: str

    @property
    def short(self) -> "Entity":
        """The same without the namespace, which may be left out."""
        steps = self.path.split(".")
        return Entity(self.kind, ".".join(steps[-1 if self.kind == RECORD else -2 :]))


Tags: TypeAlias = tuple[tuple[Entity, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class TagChange:
    """What becomes of the tags of a schema that is registered.

    Args:
        add: tags that are added.
        remove: tags that are removed.
        propagate: whether those of the version before are added.
    """

    add: Tags = ()
    remove: Tags = ()
    propagate: bool = False


NO_CHANGE: Final = TagChange()


def tags_in(value: Json) -> Tags:
    """The tags in a schema's JSON value; only what carries some."""
    return tuple((entity, tags) for entity, node in _entities(value, "") if (tags := _tags(node)))


def with_tags(text: str, add: Tags, remove: Tags = ()) -> str:
    """The text of a schema, which has to be valid, with other tags.

    Raises:
        BadSchemaError: nothing in it has such a path.
    """
    value = json.loads(text)
    everything: dict[Entity, JsonObject] = {}
    for entity, node in _entities(value, ""):
        everything.setdefault(entity, node)
        everything.setdefault(entity.short, node)
    for changes, adding in ((add, True), (remove, False)):
        for wanted, tags in _together(changes).items():
            if wanted not in everything:
                raise BadSchemaError(f"No matching path '{wanted.path}' found in the schema")
            node = everything[wanted]
            before = _tags(node)
            left = [*before, *tags] if adding else [one for one in before if one not in tags]
            _put(node, tuple(dict.fromkeys(left)))
    return canonical_text(value)


def _together(changes: Tags) -> dict[Entity, dict[str, None]]:
    """Each place once, with all tags that are told for it, in their order."""
    found: dict[Entity, dict[str, None]] = {}
    for wanted, tags in changes:
        found.setdefault(wanted, {}).update(dict.fromkeys(tags))
    return found


def with_tags_of(text: str, before: Tags) -> str:
    """The text of a schema with the tags of another one, as far as both have what carries them."""
    there = {entity for entity, _ in _entities(json.loads(text), "")}
    return with_tags(text, tuple(one for one in before if one[0] in there))


def _entities(value: Json, space: str) -> Iterator[tuple[Entity, JsonObject]]:
    """Everything that can carry tags, and where it stands, in the order of the text."""
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
