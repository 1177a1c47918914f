"""Registration of a schema: find an existing version, or add one. Pure.

The order of the checks is that of Confluent's registry, since it determines which of several errors
a client gets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from schemas.registry.config import Config, Mode
from schemas.registry.content import Content, Guid, alike, guid_of
from schemas.registry.judge import Candidate, problems, relevant
from schemas.registry.lookup import numbered, referrers
from schemas.registry.metadata import (
    VERSION_PROPERTY,
    Metadata,
)
from schemas.registry.names import SubjectName, may_hold_schemas
from schemas.registry.prepare import (
    LATEST,
    Prepared,
    Sent,
    completed,
    prepared,
    same,
    stored,
    tags_of,
)
from schemas.registry.refused import (
    BadSchemaError,
    BadSubjectError,
    IncompatibleError,
    NotPermittedError,
    ReferenceExistsError,
)
from schemas.registry.scopes import check_writable, config_in_force, in_context, mode_in_force
from schemas.registry.state import Change, ContentPut, State, SubjectPut, Version, Versions
from schemas.registry.tags import with_tags, with_tags_of
from schemas.types import INT_MAX


@dataclass(frozen=True, slots=True)
class Registered:
    """The version of a registered schema, and the changes that add it."""

    name: SubjectName
    version: Version
    content: Content
    changes: tuple[Change, ...] = ()


def register(
    state: State, name: SubjectName, sent: Sent, *, normal: bool, now_ms: int
) -> Registered:
    """Add a schema to a subject, or find its existing version.

    Args:
        state: the registry.
        name: the subject.
        sent: the schema.
        normal: whether to normalise it, also if the configuration does not demand it.
        now_ms: ms since 1970.

    Raises:
        BadSubjectError: the name is not valid for a subject.
        BadSchemaError: it is no schema, a reference does not exist, or its version is wrong.
        NotPermittedError: the mode does not permit it, or the id has another content.
        IncompatibleError: it is incompatible with existing versions.
    """
    if not may_hold_schemas(name):
        raise BadSubjectError(name)
    config = config_in_force(state, name)
    normal = normal or config.normalize is True
    sent = _tagged(state, name, sent)
    found = _known(state, name, sent, config, normal=normal)
    if found is not None:
        return found
    mode = mode_in_force(state, name)
    _check_mode(state, name, sent, mode)
    whole = sent if mode.takes_ids else _filled(state, name, sent, config)
    new = sent.id is None and config.validate_new is not False
    one = prepared(state, name, whole, normal=normal, new=new)
    if sent.version == 0 and sent.id is None:
        found = _newest_same(state, name, one)
        if found is not None:
            return found
    if not mode.takes_ids:
        why = reasons(state, name, one)
        if why:
            raise IncompatibleError(name, why)
    return _added(state, name, one, sent, mode=mode, now_ms=now_ms)


def _tagged(state: State, name: SubjectName, sent: Sent) -> Sent:
    """A schema with the requested tags in its text; then it has a version, too."""
    if not (sent.tags.add or sent.tags.remove):
        return sent
    text = prepared(state, name, sent, normal=False).content.text
    made = with_tags(text, sent.tags.add, sent.tags.remove)
    return replace(sent, text=made, version=sent.version or LATEST)


def reasons(state: State, name: SubjectName, one: Prepared) -> tuple[str, ...]:
    """The messages about a schema that is incompatible with a subject; else empty."""
    config = config_in_force(state, name)
    versions = relevant(config, state.versions(name))
    return problems(config, candidate(one), candidates(state, name, versions))


def candidates(state: State, name: SubjectName, versions: Versions) -> Sequence[Candidate]:
    """Versions of a subject, parsed for a comparison."""
    return [
        replace(candidate(stored(state, name, state.content(v.guid))), number=v.number)
        for v in versions
    ]


def candidate(one: Prepared) -> Candidate:
    """A prepared schema as a candidate of a comparison."""
    return Candidate(one.content, one.schema)


def _known(
    state: State, name: SubjectName, sent: Sent, config: Config, *, normal: bool
) -> Registered | None:
    """The existing version of a schema, which is returned in every mode."""
    layers = (config.default_metadata, config.override_metadata)
    if any((*layers, config.default_rules, config.override_rules)) or not sent.text.strip():
        return None
    if sent.tags.propagate:
        return None
    one = prepared(state, name, sent, normal=normal)
    visible = state.versions(name)
    for version in reversed(visible[-1:] if sent.version == LATEST else visible):
        if sent.version > 0 and (sent.id is None or sent.version != version.number):
            continue
        if sent.id in {None, version.id} and same(state, name, one, version):
            return Registered(name, version, state.content(version.guid))
    return None


def _newest_same(state: State, name: SubjectName, one: Prepared) -> Registered | None:
    for version in reversed(state.versions(name)):
        if same(state, name, one, version):
            return Registered(name, version, state.content(version.guid))
    return None


def _check_mode(state: State, name: SubjectName, sent: Sent, mode: Mode) -> None:
    check_writable(state, name)
    if sent.id is not None and not mode.takes_ids:
        raise NotPermittedError(f"Subject {in_context(name)} is not in import mode")
    if sent.id is None and mode is not Mode.READWRITE:
        raise NotPermittedError(f"Subject {in_context(name)} is not in read-write mode")


def _filled(state: State, name: SubjectName, sent: Sent, config: Config) -> Sent:
    """A schema with metadata and rules of its predecessor and the configuration, and its number."""
    if not sent.text.strip():
        last = next(reversed(state.versions(name)), None)
        if last is None:
            raise BadSchemaError("Empty schema")
        before = state.content(last.guid)
        sent = replace(sent, text=before.text, references=before.references)
    elif sent.tags.propagate:
        sent = _propagated(state, name, sent)
    made = completed(state, name, sent, config)
    numbered = made.metadata is not None and made.metadata.get(VERSION_PROPERTY) is not None
    if sent.version == 0 and not numbered:
        return made
    number = str(_next(state, name))
    metadata = (made.metadata or Metadata()).with_property(VERSION_PROPERTY, number)
    return replace(made, metadata=metadata)


def _propagated(state: State, name: SubjectName, sent: Sent) -> Sent:
    """A schema with the tags of the previous version."""
    last = next(reversed(state.versions(name)), None)
    if last is None:
        return sent
    text = prepared(state, name, sent, normal=False).content.text
    before = tags_of(stored(state, name, state.content(last.guid)))
    return replace(sent, text=with_tags_of(text, before))


def _next(state: State, name: SubjectName) -> int:
    """The number of the next version.

    Raises:
        NotPermittedError: there is none left.
    """
    number = _after_last(state, name)
    if number > INT_MAX:
        raise NotPermittedError(f"Subject {name} has no number left for another version")
    return number


def _after_last(state: State, name: SubjectName) -> int:
    return max((v.number for v in state.versions(name, deleted=True)), default=0) + 1


def _added(
    state: State, name: SubjectName, one: Prepared, sent: Sent, *, mode: Mode, now_ms: int
) -> Registered:
    number = sent.version if sent.version > 0 and mode.takes_ids else _next(state, name)
    if sent.version > 0 and sent.version != number:
        raise BadSchemaError("Version is not one more than previous version")
    guid = guid_of(one.content)
    _check_replaced(state, name, number, one.content)
    puts = _with_id(state, name, guid, one.content, sent.id)
    ids = puts[-1].ids if puts else state.contents[guid].ids
    schema_id = sent.id if sent.id is not None else dict(reversed(ids))[name.context]
    version = Version(number, schema_id, guid, now_ms)
    gone = {
        v.number
        for v in state.versions(name, deleted=True)
        if v.number == number
        or (v.deleted and v.id == schema_id and _unused(state, name, v, number))
    }
    left = [v for v in state.versions(name, deleted=True) if v.number not in gone]
    versions = tuple(sorted((*left, version), key=lambda v: v.number))
    return Registered(name, version, one.content, (*puts, SubjectPut(name, versions)))


def _check_replaced(state: State, name: SubjectName, number: int, content: Content) -> None:
    """Check that no schema, the new one included, refers to a version whose content is replaced.

    Raises:
        ReferenceExistsError: a schema refers to it.
    """
    before = numbered(state, name, number, deleted=True)
    if before is None or before.guid == guid_of(content):
        return
    itself = any((name.resolve(r.subject), r.version) == (name, number) for r in content.references)
    if itself or referrers(state, name, number, deleted=True):
        raise ReferenceExistsError(name, number)


def _unused(state: State, name: SubjectName, version: Version, below: int) -> bool:
    """Whether a version is older and has no references to it, so that it may be removed."""
    return version.number < below and (name, version.number) not in state.referrers


def _with_id(
    state: State, name: SubjectName, guid: Guid, content: Content, given: int | None
) -> tuple[ContentPut, ...]:
    """The changes that give a content an id in this context, its own last; () if it has one.

    Raises:
        BadSchemaError: another content has its GUID.
        NotPermittedError: there is no id left, or the given one belongs to another content.
    """
    known = state.contents.get(guid)
    if known is not None and not alike(known.content, content):
        raise BadSchemaError(
            f"Another schema, with other references, metadata or rules, has the GUID {guid}, too"
        )
    ids = known.ids if known else ()
    if given is None:
        if known and any(context == name.context for context, _ in ids):
            return ()
        number = state.next_id(name.context)
        if number is None:
            raise NotPermittedError(f"Context {name.context} has no id left for another schema")
        return (ContentPut(guid, content, (*ids, (name.context, number))),)
    at = (name.context, given)
    if at in ids:
        return ()
    made = ContentPut(guid, content, (*ids, at))
    holder = state.guids.get(at)
    if holder is None:
        return (made,)
    if at in state.users:
        raise NotPermittedError(
            f"Overwrite new schema with id {given} in context {name.prefix} is not permitted."
        )
    before = state.contents[holder]
    left = tuple(one for one in before.ids if one != at)
    return (replace(before, ids=left), made)
