"""Complete entries of a registry: versions with references, metadata and rules. Pure.

They are for administration and for copies to another registry; `schemas.records` has the subset for
decoding and deploying.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.canonical import alike, content
from schemas.json_value import Json, JsonObject, number_of, text_of
from schemas.outside import of_type
from schemas.registry.content import Reference

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class SchemaUse:
    """One version of one subject."""

    subject: str
    version: int

    def __str__(self) -> str:
        return f"{self.subject} version {self.version}"


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """One version of a subject with all that a registry stores of it.

    Args:
        kind: `AVRO`, `JSON` or `PROTOBUF`.
        references: each with `name`, `subject` and `version`, in the registry's JSON.
        metadata: in the registry's JSON; None: it has none.
        rule_set: likewise.
        deleted: whether it is soft-deleted: readable by its id only.
    """

    subject: str
    version: int
    id: int
    text: str
    guid: str = ""
    kind: str = "AVRO"
    references: tuple[JsonObject, ...] = ()
    metadata: JsonObject | None = None
    rule_set: JsonObject | None = None
    deleted: bool = False

    @property
    def use(self) -> SchemaUse:
        """Its subject and version."""
        return SchemaUse(self.subject, self.version)

    @property
    def referred(self) -> tuple[SchemaUse, ...]:
        """The versions that it refers to; references without a context are in its own."""
        context = context_of(self.subject)
        return tuple(
            SchemaUse(qualified(str(one["subject"]), context), number_of(one["version"]))
            for one in self.references
        )

    def schema(self) -> AvroSchema:
        """Parse the schema.

        Raises:
            SchemaError: it is not Avro, or cannot be parsed alone.
        """
        if self.kind != "AVRO":
            raise SchemaError(f"the schema is {self.kind}, only Avro can be read", place=str(self))
        try:
            return parse(self.text)
        except SchemaError as error:
            where = f"{self}, {error.place}"
            raise SchemaError(error.message, place=where, hint=error.hint) from error

    def differences(self, other: "StoredVersion") -> tuple[str, ...]:
        """The parts in which the content of another one differs; empty: it is the same.

        A missing rule set is no difference: some registries do not store them.
        """
        parts = {
            "schema type": self.kind == other.kind,
            "schema": self.kind == other.kind and _same_text(self.kind, self.text, other.text),
            "references": alike([*self.references], [*other.references]),
            "metadata": alike(self.metadata or {}, other.metadata or {}),
            "rule set": not other.rule_set or alike(self.rule_set, other.rule_set),
        }
        return tuple(part for part, same in parts.items() if not same)

    def __str__(self) -> str:
        return f"subject {self.subject}, version {self.version}"


def stored(
    found: Mapping[str, Json], otherwise: SchemaUse, schema_id: int, place: str
) -> StoredVersion:
    """Read a version from the JSON of registries.

    Args:
        found: an answer, or a line of a file; its `schema` is a text.
        otherwise: subject and version, if it does not contain them.
        schema_id: its id.
        place: its origin, for errors.

    Raises:
        SchemaError: a part of it has the wrong type.
    """
    references = _part(found, "references", list, place) or []
    if not all(_is_reference(one) for one in references):
        message = "the schema has a reference without name, subject and version"
        raise SchemaError(message, place=place)
    return StoredVersion(
        _part(found, "subject", str, place) or otherwise.subject,
        _part(found, "version", int, place) or otherwise.version,
        schema_id,
        text_of(found["schema"]),
        _part(found, "guid", str, place) or "",
        _part(found, "schemaType", str, place) or "AVRO",
        tuple(references),
        _part(found, "metadata", dict, place),
        _part(found, "ruleSet", dict, place),
        _part(found, "deleted", bool, place) or False,
    )


_WORDS = {str: "a text", int: "a number", bool: "true or false", list: "a list", dict: "an object"}


def _part(found: Mapping[str, Json], name: str, kind: type[V], place: str) -> V | None:
    """The value of a key; None if it is missing or null."""
    value = found.get(name)
    if value is None or (of_type(value, kind) and isinstance(value, kind)):
        return value
    raise SchemaError(f"the schema has {name} that should be {_WORDS[kind]}", place=place)


def _is_reference(one: Json) -> bool:
    match one:
        case {"name": str(), "subject": str(), "version": int() as version}:
            return of_type(version, int)
    return False


def proposed(subject: str, text: str, references: Sequence[Reference]) -> StoredVersion:
    """A schema that is not registered yet, with 0 as its version and id."""
    return StoredVersion(subject, 0, 0, text, references=tuple(map(asdict, references)))


def context_of(subject: str) -> str:
    """The context in the name of a subject, as `:.name:`; empty for the default one."""
    if not subject.startswith(":."):
        return ""
    name = subject[1:].partition(":")[0]
    return "" if name == "." else f":{name}:"


def context_at(address: str) -> str:
    """The context of an address, `…/contexts/.name`, as `:.name:`; it applies to plain subjects.

    Registries accept the name without its dot, and with colons around it, too.
    """
    *_, before, last = ("", *urlsplit(address).path.rstrip("/").split("/"))
    name = unquote(last).removeprefix(":").removesuffix(":").removeprefix(".")
    return context_of(f":.{name}:") if before == "contexts" else ""


def qualified(subject: str, context: str) -> str:
    """A subject with its context, which is `context` if it has none; no prefix for the default."""
    return subject.removeprefix(":.:") if subject.startswith(":.") else f"{context}{subject}"


def named_in(context: str, subject: str) -> str:
    """The name of a qualified subject at an address whose plain subjects are in `context`."""
    return f":.:{subject}" if context and not subject.startswith(":.") else subject


def _same_text(kind: str, one: str, other: str) -> bool:
    """Whether texts have the same content: registries print the same Avro schema differently."""
    if one == other:
        return True
    if kind == "PROTOBUF":
        return False
    try:
        mine, theirs = json.loads(one), json.loads(other)
        return alike(content(mine), content(theirs)) if kind == "AVRO" else alike(mine, theirs)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
