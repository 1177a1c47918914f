"""Request and answer bodies: conversion from and to JSON. Pure."""

from collections.abc import Mapping
from typing import Final

from schemas.json_value import Json, JsonObject, texts_in
from schemas.registry.content import Content, Guid, Reference, content_json, guid_of
from schemas.registry.limits import REFERENCES_MAX
from schemas.registry.lookup import Found
from schemas.registry.metadata import metadata_of, rules_of
from schemas.registry.prepare import Sent
from schemas.registry.refused import (
    BadBodyError,
    BadRulesError,
    BadSchemaError,
    TooLargeError,
)
from schemas.registry.retag import Retagging
from schemas.registry.tags import FIELD, RECORD, Entity, TagChange, Tags
from schemas.types import INT_MAX

TYPES: Final = ("AVRO",)


def sent(body: Mapping[str, Json]) -> Sent:
    """Parse the schema in a body.

    Raises:
        BadBodyError: a value has the wrong type.
        BadSchemaError: it is not Avro.
        BadRulesError: a rule is invalid.
        TooLargeError: it refers to too many others.
    """
    kind = body.get("schemaType")
    if kind is not None and not isinstance(kind, str):
        raise BadBodyError("schemaType is not a text")
    if kind not in {None, *TYPES}:
        raise BadSchemaError(f"Invalid schema type {kind}")
    text = body.get("schema")
    if text is not None and not isinstance(text, str):
        raise BadBodyError("schema is not a text")
    number = _number(body.get("id"), "id", -1)
    return Sent(
        text or "",
        _references(body.get("references")),
        metadata_of(body.get("metadata")),
        rules_of(body.get("ruleSet")),
        _number(body.get("version"), "version", 0),
        number if number >= 0 else None,
        TagChange(
            _tags(body, "schemaTagsToAdd"),
            _tags(body, "schemaTagsToRemove"),
            body.get("propagateSchemaTags") is True,
        ),
    )


def retagging(body: Mapping[str, Json]) -> Retagging:
    """Parse a request for changes of tags.

    Raises:
        BadBodyError: a value has the wrong type.
        BadRulesError: a rule is invalid, or rules are both given and changed.
    """
    drop = body.get("rulesToRemove")
    removed = () if drop is None else texts_in(drop)
    if removed is None:
        raise BadBodyError("rulesToRemove is not a list of texts")
    made = Retagging(
        _tags(body, "tagsToAdd"),
        _tags(body, "tagsToRemove"),
        metadata_of(body.get("metadata")),
        rules_of(body.get("ruleSet")),
        rules_of(body.get("rulesToMerge")),
        removed,
        _number(body.get("newVersion"), "newVersion", 0),
    )
    if made.rules is not None and (made.merge is not None or drop is not None):
        raise BadRulesError("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
    return made


def _tags(body: Mapping[str, Json], key: str) -> Tags:
    """Parse tags in a body; an entity may occur more than once."""
    given = body.get(key)
    if given is None:
        return ()
    if not isinstance(given, list):
        raise BadBodyError(f"{key} is not a list")
    return tuple(_tags_of_entity(one, key) for one in given)


def _tags_of_entity(value: Json, key: str) -> tuple[Entity, tuple[str, ...]]:
    entity = value.get("schemaEntity") if isinstance(value, dict) else None
    tags = value.get("tags") if isinstance(value, dict) else None
    if not isinstance(entity, dict) or not isinstance(tags, list):
        raise BadBodyError(f"{key}: each has a schemaEntity and a list of tags")
    path, kind, texts = entity.get("entityPath"), entity.get("entityType"), texts_in(tags)
    if not isinstance(path, str) or texts is None:
        raise BadBodyError(f"{key}: the entityPath and the tags are texts")
    if not isinstance(kind, str) or kind not in {RECORD, FIELD}:
        raise BadBodyError(f"{key}: the entityType is {RECORD} or {FIELD}")
    return Entity(kind, path.removeprefix(".")), texts


def tags_json(tags: Tags) -> list[JsonObject]:
    """The JSON of tags in answers."""
    return [
        {
            "schemaEntity": {"entityPath": entity.path, "entityType": entity.kind},
            "tags": list(texts),
        }
        for entity, texts in tags
    ]


def _references(value: Json) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadBodyError("references is not a list")
    if len(value) > REFERENCES_MAX:
        raise TooLargeError(f"a schema refers to at most {REFERENCES_MAX} others")
    return tuple(_reference(one) for one in value)


def _reference(value: Json) -> Reference:
    if not isinstance(value, dict):
        raise BadBodyError("a reference is not an object")
    name, subject = value.get("name"), value.get("subject")
    version = None if value.get("version") is None else _number(value["version"], "version", 0)
    if not isinstance(name, str | None) or not isinstance(subject, str | None):
        raise BadBodyError("a reference names something that is not a text")
    if not name or subject is None or version is None:
        shown = f"{{name='{name}', subject='{subject}', version={version}}}"
        raise BadSchemaError(f"Invalid schema of type AVRO, details: Invalid reference: {shown}")
    return Reference(name, subject, version)


def _number(value: Json, what: str, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
        value = int(value[:12])
    if isinstance(value, float) and value.is_integer():  # 1.0 is a whole number in JSON
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > INT_MAX:
        raise BadBodyError(f"{what} is not a whole number of 32 bits")
    return value


def described(content: Content, guid: Guid | None = None) -> JsonObject:
    """The JSON of a content, part of every answer with a schema."""
    return {"guid": guid or guid_of(content), "schemaType": "AVRO", **content_json(content)}


def shown(found: Found) -> JsonObject:
    """The JSON of a version of a subject."""
    one = found.version
    return {
        "subject": str(found.name),
        "version": one.number,
        "id": one.id,
        **described(found.content, one.guid),
        "ts": one.at_ms,
        "deleted": one.deleted,
    }
