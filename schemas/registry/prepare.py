"""Preparation of a sent schema: resolved references, parsed and canonical content. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema
from schemas.inlining import inlined
from schemas.json_value import Json
from schemas.registry.config import Config
from schemas.registry.content import (
    Content,
    Guid,
    Reference,
    alike,
    guid_of,
    kept,
    normal_references,
    not_avro,
)
from schemas.registry.java_text import canonical_text, normal_text
from schemas.registry.limits import DIGESTS_MAX, PARSED_CHARS_MAX, REFERENCES_MAX, USED_CHARS_MAX
from schemas.registry.metadata import (
    VERSION_PROPERTY,
    Metadata,
    RuleSet,
    merged_metadata,
    merged_rules,
)
from schemas.registry.names import SubjectName
from schemas.registry.refused import BadSchemaError, TooLargeError
from schemas.registry.result_cache import ResultCache
from schemas.registry.state import State, Version
from schemas.registry.tags import NO_CHANGE, TagChange, Tags, tags_in

LATEST = -1
_WHOLE: ResultCache[AvroSchema, str] = ResultCache(PARSED_CHARS_MAX)
_DIGESTS: ResultCache[bytes, bytes] = ResultCache(DIGESTS_MAX)


@dataclass(frozen=True, slots=True)
class Sent:
    """A schema in a request body.

    Args:
        version: 0: not given; -1: the next.
        id: None: not given.
        tags: changes of the tags in its text.
    """

    text: str
    references: tuple[Reference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0
    id: int | None = None
    tags: TagChange = NO_CHANGE


@dataclass(frozen=True, slots=True)
class Prepared:
    """A content, with the parsed schema and all its references."""

    content: Content
    schema: AvroSchema
    used: tuple[AvroSchema, ...]
    guid: Guid = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "guid", guid_of(self.content))


def prepared(
    state: State, name: SubjectName, sent: Sent, *, normal: bool, new: bool = False
) -> Prepared:
    """The content of a schema to be stored under a subject.

    Args:
        state: contains the references.
        name: the subject; references without a context are in its context.
        sent: the schema.
        normal: whether to normalise it.
        new: whether references to deleted schemas are rejected.

    Raises:
        BadSchemaError: it is no schema, a reference does not exist, or references cannot be
            inlined.
        TooLargeError: it refers to too many others.
    """
    references = tuple(_resolved(state, name, r, new=new) for r in sent.references)
    used = used_by(state, name, references, deleted=not new)
    text, schema = kept(sent.text, used, normal=normal)
    content = Content(text, references, sent.metadata, sent.rules)
    if normal:
        content = replace(content, references=normal_references(references))
    made = Prepared(content, schema, used)
    if used:
        whole_text(made)  # raises if references cannot be inlined: no client could use the schema
    return made


def completed(state: State, name: SubjectName, sent: Sent, config: Config) -> Sent:
    """A schema with the metadata and rules that its predecessor and the configuration add."""
    last = next(reversed(state.versions(name)), None)
    before = state.content(last.guid) if last else None
    own = sent.metadata if sent.metadata is not None or before is None else before.metadata
    rules = sent.rules if sent.rules is not None or before is None else before.rules
    return replace(
        sent,
        metadata=merged_metadata(config.default_metadata, own, config.override_metadata),
        rules=merged_rules(config.default_rules, rules, config.override_rules),
    )


def stored(state: State, name: SubjectName, content: Content) -> Prepared:
    """A stored content, parsed."""
    used = used_by(state, name, content.references, deleted=True)
    _, schema = kept(content.text, used, normal=False)
    return Prepared(content, schema, used)


def used_by(
    state: State, name: SubjectName, references: Sequence[Reference], *, deleted: bool
) -> tuple[AvroSchema, ...]:
    """All schemas of references, direct and indirect, dependencies first; per name the first.

    Raises:
        BadSchemaError: a reference does not exist.
        TooLargeError: there are more than `REFERENCES_MAX`, or they have more characters than
            `USED_CHARS_MAX`.
    """
    used: tuple[AvroSchema, ...] = ()
    for guid in _used_contents(state, name, references, deleted=deleted):
        _, schema = kept(state.content(guid).text, used, normal=False)
        used = (*used, schema)
    return used


def _used_contents(
    state: State, name: SubjectName, references: Sequence[Reference], *, deleted: bool
) -> tuple[Guid, ...]:
    """The contents that `used_by` parses, in the same order; it raises as that does."""
    found: dict[str, Guid] = {}
    _collect(state, name, references, found, deleted=deleted, open_names=())
    if sum(len(state.content(guid).text) for guid in found.values()) > USED_CHARS_MAX:
        raise TooLargeError(f"schemas that one refers to have at most {USED_CHARS_MAX} characters")
    return tuple(found.values())


def _collect(
    state: State,
    name: SubjectName,
    references: Sequence[Reference],
    found: dict[str, Guid],
    *,
    deleted: bool,
    open_names: tuple[str, ...],
) -> None:
    for reference in references:
        if reference.name in found or reference.name in open_names:
            continue
        if len(found) + len(open_names) >= REFERENCES_MAX:
            raise TooLargeError(f"a schema refers to at most {REFERENCES_MAX} others")
        target = name.resolve(reference.subject)
        version = _version(state, target, reference.version, deleted=deleted)
        further = state.content(version.guid).references
        inner = (*open_names, reference.name)
        _collect(state, target, further, found, deleted=deleted, open_names=inner)
        found[reference.name] = version.guid


def reached(
    state: State, name: SubjectName, references: Iterable[Reference]
) -> frozenset[SubjectName]:
    """The subjects of references, direct and indirect."""
    found: set[tuple[SubjectName, int]] = set()
    left = [(name.resolve(one.subject), one.version) for one in references]
    while left:
        at = left.pop()
        if at in found:
            continue
        found.add(at)
        target, number = at
        one = state.version(target, number)
        for version in state.versions(target, deleted=True) if number == LATEST else (one,):
            inner = state.content(version.guid).references if version else ()
            left += [(target.resolve(one.subject), one.version) for one in inner]
    return frozenset(target for target, _ in found)


def _resolved(state: State, name: SubjectName, reference: Reference, *, new: bool) -> Reference:
    """A reference with its version resolved to a number."""
    version = _version(state, name.resolve(reference.subject), reference.version, deleted=not new)
    return replace(reference, version=version.number)


def _version(state: State, target: SubjectName, number: int, *, deleted: bool) -> Version:
    if number == LATEST:
        found = next(reversed(state.versions(target)), None)
    else:
        found = state.version(target, number)
    if found is None or (found.deleted and not deleted):
        raise BadSchemaError(
            "Invalid schema of type AVRO, details: No schema reference found for subject "
            f'"{target}" and version {number}'
        )
    return found


def same(state: State, name: SubjectName, one: Prepared, version: Version) -> bool:
    """Whether a version of a subject equals a schema, independent of its spelling.

    References may be inlined; the version property is compared only if the schema has it.
    """
    content = state.content(version.guid)
    if version.guid == one.guid and alike(content, one.content):
        return True
    if content.rules != one.content.rules or not _alike(one.content, content, version.number):
        return False
    return _whole_digest(one) == _kept_digest(state, name, version.guid)


def _whole_digest(one: Prepared) -> bytes:
    """A digest of the inlined text of a schema."""
    found = _DIGESTS.get(one.schema.key)
    if found is None:
        found = sha256(whole_text(one).encode()).digest()
        _DIGESTS.put(one.schema.key, found, 1)
    return found


def _kept_digest(state: State, name: SubjectName, guid: Guid) -> bytes:
    """The same for a stored content.

    The cache has room for far more digests than parsed schemas: a registration under a subject with
    many or large versions, or many references, parses none of them again. The key includes the
    references, which may be other schemas in another context, or at another time.
    """
    content = state.content(guid)
    used = _used_contents(state, name, content.references, deleted=True)
    key = sha256("".join((guid, *used)).encode()).digest()
    found = _DIGESTS.get(key)
    if found is None:
        found = _whole_digest(stored(state, name, content))
        _DIGESTS.put(key, found, 1)
    return found


def _alike(sent: Content, existing: Content, number: int) -> bool:
    """Whether metadata are equal, except for a missing version property."""
    given = sent.metadata.get(VERSION_PROPERTY) if sent.metadata else None
    if given is not None and given != str(number):
        return False
    return _unversioned(sent.metadata) == _unversioned(existing.metadata)


def _unversioned(metadata: Metadata | None) -> Metadata | None:
    left = metadata.with_property(VERSION_PROPERTY, None) if metadata else None
    return left if left != Metadata() else None


def whole_text(one: Prepared) -> str:
    """A schema with its references inlined, normalised.

    Raises:
        BadSchemaError: one of the types cannot be named at its place in the inlined schema.
    """
    found = _WHOLE.get(one.schema)
    if found is None:
        found = normal_text(_whole(one))
        _WHOLE.put(one.schema, found, len(found))
    return found


def whole_schema(one: Prepared) -> str:
    """The same, not normalised, as Java Avro prints it."""
    return canonical_text(_whole(one))


def tags_of(one: Prepared) -> Tags:
    """The tags in a schema and in its references; it raises as `whole_text`."""
    return tags_in(_whole(one))


def _whole(one: Prepared) -> Json:
    try:
        whole: Json = inlined(one.schema)
    except SchemaError as error:
        raise not_avro(error) from error
    return whole
