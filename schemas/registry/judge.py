"""Compatibility check of a new schema with a subject's versions, with Confluent's messages. Pure.

The level determines the compared versions, newest first; the first incompatible one ends the
comparison. `group` is the name of a property: only versions with the same value are compared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from schemas.avro import AvroSchema
from schemas.compatibility import Difference, Level, Reason, directions, is_transitive
from schemas.compatibility import differences as cached_differences
from schemas.registry.config import Config
from schemas.registry.content import Content
from schemas.registry.limits import PARSED_CHARS_MAX
from schemas.registry.result_cache import ResultCache
from schemas.types import RecordType

T = TypeVar("T")
SHOWN_MAX: Final = 10_240
_PAIR_CHARS: Final = 400
"""Weight of a compatible pair in the cache."""
_COMPARED: Final[ResultCache[tuple[bytes, bytes], tuple[Difference, ...]]] = ResultCache(
    PARSED_CHARS_MAX
)
_DESCRIPTIONS: Final[Mapping[Reason, str]] = {
    Reason.FIXED_SIZE_MISMATCH: "The size of FIXED type field at path '{path}' in the {reader} "
    "schema does not match with the {writer} schema",
    Reason.TYPE_MISMATCH: "The type (path '{path}') of a field in the {reader} schema does not "
    "match with the {writer} schema",
    Reason.NAME_MISMATCH: "The name of the schema has changed (path '{path}')",
    Reason.MISSING_ENUM_SYMBOLS: "The {reader} schema is missing enum symbols '{detail}' at path "
    "'{path}' in the {writer} schema",
    Reason.MISSING_UNION_BRANCH: "The {reader} schema is missing a type inside a union field at "
    "path '{path}' in the {writer} schema",
    Reason.READER_FIELD_MISSING_DEFAULT_VALUE: "The field '{detail}' at path '{path}' in the "
    "{reader} schema has no default value and is missing in the {writer} schema",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A schema with its content, to be compared."""

    content: Content
    schema: AvroSchema
    number: int = 0


def relevant(config: Config, versions: tuple[T, ...]) -> tuple[T, ...]:
    """The existing versions, oldest first, that `problems` may compare.

    >>> relevant(Config(level=Level.FULL), (1, 2, 3))
    (3,)
    """
    every = config.group or (config.level is not None and is_transitive(config.level))
    return versions if every else versions[-1:]


def problems(config: Config, new: Candidate, previous: Sequence[Candidate]) -> tuple[str, ...]:
    """The messages about an incompatible schema; empty if it is compatible.

    Args:
        config: the effective configuration of the subject.
        new: the schema.
        previous: the versions that are not deleted, oldest first.
    """
    level = config.level or Level.BACKWARD
    found: list[str] = []
    if config.validate_fields:
        found += _reserved(new, previous[-1] if previous else None)
    if level is not Level.NONE:
        found += _incompatible(level, new, _of_group(config.group, new, previous))
    if not found:
        return ()
    fields = "true" if config.validate_fields else "false"
    return (*found, f"{{validateFields: '{fields}', compatibility: '{level.value}'}}")


def _of_group(
    group: str | None, new: Candidate, previous: Sequence[Candidate]
) -> Sequence[Candidate]:
    if not group:
        return previous

    def of(one: Candidate) -> str | None:
        return one.content.metadata.get(group) if one.content.metadata else None

    return [one for one in previous if of(one) == of(new)]


def _incompatible(level: Level, new: Candidate, previous: Sequence[Candidate]) -> list[str]:
    for old in list(reversed(previous))[: None if is_transitive(level) else 1]:
        found: list[str] = []
        reads_old, read_by_old = directions(level)
        if read_by_old:
            found += _messages(_compared(old.schema, new.schema), "old", "new")
        if reads_old:
            found += _messages(_compared(new.schema, old.schema), "new", "old")
        if found:
            return [*found, f"{{oldSchemaVersion: {old.number}}}", _old_text(old.content.text)]
    return []


def _compared(reader: AvroSchema, writer: AvroSchema) -> tuple[Difference, ...]:
    """The differences, cached without the schemas, so that large schemas can be freed."""
    pair = reader.key, writer.key
    found = _COMPARED.get(pair)
    if found is None:
        found = cached_differences.__wrapped__(reader, writer)
        size = sum(len(one.path) + len(one.message) + len(one.detail) for one in found)
        _COMPARED.put(pair, found, _PAIR_CHARS + size)
    return found


def _old_text(text: str) -> str:
    if len(text) <= SHOWN_MAX:
        return f"{{oldSchema: '{text}'}}"
    return f"{{oldSchema: <truncated> '{text[:SHOWN_MAX]}...'}}"


def _messages(found: Iterable[Difference], reader: str, writer: str) -> Iterator[str]:
    for one in found:
        description = _DESCRIPTIONS[one.reason].format(
            path=one.location, reader=reader, writer=writer, detail=one.detail
        )
        yield (
            f"{{errorType:'{one.reason.value}', description:'{description}', "
            f"additionalInfo:'{one.detail}'}}"
        )


def _reserved(new: Candidate, latest: Candidate | None) -> Iterator[str]:
    """The messages about reserved fields; `latest` is None for the first version."""
    mine = set(_reserved_by(new))
    for name in () if latest is None else _reserved_by(latest):
        if name not in mine:
            yield (
                f"The new schema has reserved field {name} removed from its metadata which is "
                "present in the old schema's metadata."
            )
    if isinstance(new.schema.root, RecordType):
        for field in new.schema.root.fields:
            if field.name in mine:
                yield (
                    f"The new schema has field that conflicts with the reserved field {field.name}."
                )


def _reserved_by(one: Candidate) -> tuple[str, ...]:
    return one.content.metadata.reserved if one.content.metadata else ()
