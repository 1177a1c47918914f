"""Bodies: from JSON to what is decided on, and back. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from schemas.registry.content import Content, Guid, Reference, content_json, guid_of
from schemas.registry.limits import REFERENCES_MAX
from schemas.registry.lookup import Found
from schemas.registry.metadata import metadata_of, rules_of
from schemas.registry.prepare import Sent
from schemas.registry.refused import BadBodyError, BadSchemaError, TooLargeError
from schemas.registry.state import Version
from schemas.types import INT_MAX

TYPES: Final = ("AVRO",)


def sent(body: Mapping[str, Any]) -> Sent:
    """A schema out of a body.

    Raises:
        BadBodyError: something in it has another type than it should.
        BadSchemaError: it is not Avro.
        BadRulesError: a rule breaks a rule of rules.
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
    )


def _references(value: object) -> tuple[Reference, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadBodyError("references is not a list")
    if len(value) > REFERENCES_MAX:
        raise TooLargeError(f"a schema refers to at most {REFERENCES_MAX} others")
    return tuple(_reference(one) for one in value)


def _reference(value: object) -> Reference:
    if not isinstance(value, dict):
        raise BadBodyError("a reference is not an object")
    name, subject = value.get("name"), value.get("subject")
    version = None if value.get("version") is None else _number(value["version"], "version", 0)
    if not all(one is None or isinstance(one, str) for one in (name, subject)):
        raise BadBodyError("a reference names something that is not a text")
    if not name or subject is None or version is None:
        told = f"{{name='{name}', subject='{subject}', version={version}}}"
        raise BadSchemaError(f"Invalid schema of type AVRO, details: Invalid reference: {told}")
    return Reference(name, subject, version)


def _number(value: object, what: str, default: int) -> int:
    if value is None:
        return default
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii():
        value = int(value[:12])
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > INT_MAX:
        raise BadBodyError(f"{what} is not a whole number of 32 bits")
    return value


def described(content: Content, guid: Guid | None = None) -> dict[str, Any]:
    """What every answer that holds a schema says of it."""
    return {"guid": guid or guid_of(content), "schemaType": "AVRO", **content_json(content)}


def stamped(version: Version) -> dict[str, Any]:
    """When a version last changed, and whether it is deleted."""
    return {"ts": version.at_ms, "deleted": version.deleted}


def shown(found: Found) -> dict[str, Any]:
    """A version of a subject."""
    one = found.version
    return {
        "subject": str(found.name),
        "version": one.number,
        "id": one.id,
        **described(found.content, one.guid),
        **stamped(one),
    }
