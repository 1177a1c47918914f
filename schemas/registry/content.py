"""Content of a registered schema: text, references, metadata and rules, with one id. Pure.

The GUID of a content is Confluent's: an MD5 over its parts, so that the same content has the same
GUID in every registry.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NewType
from uuid import UUID

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.json_value import JsonObject
from schemas.registry.java_text import canonical_text, normal_text
from schemas.registry.limits import PARSED_CHARS_MAX
from schemas.registry.metadata import (
    VERSION_PROPERTY,
    Metadata,
    RuleSet,
    metadata_bytes,
    metadata_json,
    rules_bytes,
    rules_json,
)
from schemas.registry.names import java_order
from schemas.registry.refused import BadSchemaError
from schemas.registry.result_cache import ResultCache

Guid = NewType("Guid", str)
"""Lower-case hex in the groups of a UUID."""
_VERSION_BYTES: Final = 4
_HEX: Final = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Reference:
    """Reference to another schema; the author chooses the name."""

    name: str
    subject: str
    version: int

    def __str__(self) -> str:
        return f"{{name='{self.name}', subject='{self.subject}', version={self.version}}}"


@dataclass(frozen=True, slots=True)
class Content:
    """A schema as it is stored: `text` as Java Avro prints it, or normalised."""

    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None


def guid_of(content: Content) -> Guid:
    """The GUID of a content."""
    digest = hashlib.md5(b"".join(_pieces(content)), usedforsecurity=False)
    return Guid(str(UUID(bytes=digest.digest())))


def _pieces(content: Content) -> Iterator[bytes]:
    yield content.text.encode()
    for reference in content.references:
        yield reference.name.encode()
        yield reference.subject.encode()
        yield reference.version.to_bytes(_VERSION_BYTES, "big", signed=True)
    if content.metadata is not None:
        yield from metadata_bytes(content.metadata)
    if content.rules is not None:
        yield from rules_bytes(content.rules)


def alike(one: Content, other: Content) -> bool:
    """Whether contents are equal in all parts that the GUID covers.

    The GUID hashes the parts without separators, so different contents may have the same GUID.
    """
    return _timeless(one) == _timeless(other)


def _timeless(content: Content) -> Content:
    rules = content.rules
    return content if rules is None else replace(content, rules=replace(rules, enable_at=None))


def guid_in(text: str) -> Guid | None:
    """Parse a GUID, with or without dashes; None if the text is not one."""
    plain = text.replace("-", "")
    return Guid(str(UUID(plain))) if _HEX.fullmatch(plain) else None


def kept(text: str, used: Sequence[AvroSchema], *, normal: bool) -> tuple[str, AvroSchema]:
    """The stored text of a schema, and the parsed schema.

    Args:
        text: as it was sent.
        used: the schemas that it refers to, dependencies first.
        normal: whether to normalise it.

    Raises:
        BadSchemaError: it is no schema.
    """
    key = (text, tuple(used), normal)
    found = _KEPT.get(key)
    if found is None:
        found = _made_to_keep(text, key[1], normal=normal)
        _KEPT.put(key, found, len(text))
    return found


_KEPT: Final[ResultCache[tuple[str, tuple[AvroSchema, ...], bool], tuple[str, AvroSchema]]] = (
    ResultCache(PARSED_CHARS_MAX)
)


def _made_to_keep(
    text: str, used: tuple[AvroSchema, ...], *, normal: bool
) -> tuple[str, AvroSchema]:
    uncached = parse.__wrapped__  # its own cache counts schemas, whatever their size
    try:
        sent = uncached(text, used)
        made = normal_text(sent.value) if normal else canonical_text(sent.value)
        return made, uncached(made, used)
    except SchemaError as error:
        raise not_avro(error) from error


def not_avro(error: SchemaError) -> BadSchemaError:
    """The refusal of an invalid schema."""
    where = f" at {error.place}" if error.place else ""
    return BadSchemaError(f"Invalid schema of type AVRO, details: {error.message}{where}")


def normal_references(references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Normalised references: sorted, without duplicates."""
    return tuple(sorted(set(references), key=lambda r: (java_order(r.subject), r.version, r.name)))


def content_json(content: Content) -> JsonObject:
    """The JSON of a content in bodies and in the store, without empty parts."""
    made: JsonObject = {}
    if content.references:
        made["references"] = [
            {"name": r.name, "subject": r.subject, "version": r.version} for r in content.references
        ]
    if content.metadata is not None:
        made["metadata"] = metadata_json(content.metadata)
    if content.rules is not None:
        made["ruleSet"] = rules_json(content.rules)
    return made | {"schema": content.text}


def with_version(content: Content, version: int | None) -> Content:
    """The content with the property that contains its version, or without it for None."""
    metadata = content.metadata
    if metadata is None and version is None:
        return content
    number = None if version is None else str(version)
    return replace(
        content, metadata=(metadata or Metadata()).with_property(VERSION_PROPERTY, number)
    )
