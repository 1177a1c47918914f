"""Lookup of subjects, versions and schemas. Pure."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from pipeline.errors import BrokenInvariantError
from schemas.registry.config import Config
from schemas.registry.content import Content, Guid
from schemas.registry.names import DEFAULT, EVERY, Context, SubjectName, java_order
from schemas.registry.prepare import LATEST, Prepared, Sent, completed, prepared, same
from schemas.registry.refused import NoSchemaError, NoSubjectError, NoVersionError
from schemas.registry.scopes import config_in_force
from schemas.registry.state import State, User, Version, Versions

Reads: TypeAlias = Callable[[SubjectName], bool]
"""Whether the user may read a subject."""


def reads_all(_: SubjectName) -> bool:
    """Allow all subjects."""
    return True


@dataclass(frozen=True, slots=True)
class Found:
    """A version of a subject and its content."""

    name: SubjectName
    version: Version
    content: Content


def found(state: State, name: SubjectName, version: Version) -> Found:
    """Add its content to a version."""
    return Found(name, version, state.content(version.guid))


def visible(state: State, name: SubjectName, *, deleted: bool) -> Versions:
    """Versions of a subject; `deleted`: including deleted ones.

    Raises:
        NoSubjectError: there are none.
    """
    versions = state.versions(name, deleted=deleted)
    if not versions:
        raise NoSubjectError(name)
    return versions


def everywhere(state: State, name: SubjectName, reads: Reads) -> Iterator[SubjectName]:
    """The names that a read searches: for the default context, also those in all other contexts.

    Subjects in other contexts that the user may not read are skipped.
    """
    yield name
    if name.context == DEFAULT and name.subject:
        # Contexts with ids are few, while possible subjects in them are many.
        contexts = sorted(context for context in state.last_ids if context != DEFAULT)
        yield from filter(reads, (SubjectName(context, name.subject) for context in contexts))


def version(
    state: State, name: SubjectName, number: int, *, deleted: bool = False, reads: Reads = reads_all
) -> Found:
    """One version of a subject, the latest for -1.

    Raises:
        NoSubjectError, NoVersionError: it does not exist.
    """
    for place in everywhere(state, name, reads):
        one = numbered(state, place, number, deleted=deleted)
        if one is not None:
            return found(state, place, one)
    return own_version(state, name, number, deleted=deleted)


def own_version(state: State, name: SubjectName, number: int, *, deleted: bool = False) -> Found:
    """The same, without a search in other contexts, for changes.

    Raises:
        NoSubjectError, NoVersionError: it does not exist.
    """
    one = numbered(state, name, number, deleted=deleted)
    if one is None:
        visible(state, name, deleted=deleted)
        raise NoVersionError(number)
    return found(state, name, one)


def numbered(
    state: State, name: SubjectName, number: int, *, deleted: bool = False
) -> Version | None:
    """A version by its number; -1 is the latest that is not deleted."""
    if number == LATEST:
        return next(reversed(state.versions(name)), None)
    one = state.version(name, number)
    return one if one is not None and (deleted or not one.deleted) else None


def lookup(
    state: State,
    name: SubjectName,
    sent: Sent,
    *,
    normal: bool,
    deleted: bool,
    reads: Reads = reads_all,
) -> Found:
    """The newest version of a subject that equals a schema.

    Raises:
        BadSchemaError: the sent text is no schema.
        NoSubjectError, NoSchemaError: there is none.
    """
    config = config_in_force(state, name)
    normal = normal or config.normalize is True
    if sent.text.strip():
        for one in _forms(state, name, sent, config, normal=normal):
            for place in everywhere(state, name, reads):
                for each in reversed(state.versions(place, deleted=deleted)):
                    if same(state, place, one, each):
                        return found(state, place, each)
    visible(state, name, deleted=deleted)
    raise NoSchemaError


def _forms(
    state: State, name: SubjectName, sent: Sent, config: Config, *, normal: bool
) -> Iterator[Prepared]:
    """A schema as sent, and with metadata and rules of its predecessor and the configuration."""
    one = prepared(state, name, sent, normal=normal)
    yield one
    more = completed(state, name, sent, config)
    if (more.metadata, more.rules) != (sent.metadata, sent.rules):
        yield replace(one, content=replace(one.content, metadata=more.metadata, rules=more.rules))


def with_metadata(
    state: State, name: SubjectName, pairs: Sequence[tuple[str, str]], *, deleted: bool
) -> Found:
    """The newest version of a subject whose metadata have these properties.

    Raises:
        NoSubjectError, NoSchemaError: there is none.
    """
    required = set(pairs)
    for one in reversed(visible(state, name, deleted=deleted)):
        metadata = state.content(one.guid).metadata
        if metadata is not None and required.issubset(metadata.properties):
            return found(state, name, one)
    raise NoSchemaError


def by_id(state: State, schema_id: int, name: SubjectName, *, reads: Reads = reads_all) -> Found:
    """A schema by its id, deleted or not.

    Args:
        state: the registry.
        schema_id: the id.
        name: searched under this subject, in its context and then in other ones, then under all
            subjects of the default context. Without a subject: under all of its context.
        reads: whether the user may read a subject of another context.

    Raises:
        NoSchemaError: there is none.
    """
    places = [*everywhere(state, name, reads), name.whole_context] if name.subject else [name]
    for place in places:
        users = state.users.get((place.context, schema_id), frozenset())
        fits = [user for user in users if not place.subject or user[0] == place]
        if fits and (place.subject or name.context == DEFAULT or not name.subject):
            return of_user(state, min(fits, key=_order))
    raise NoSchemaError(schema_id)


def of_user(state: State, user: User) -> Found:
    """The version and content of a subject and a number."""
    name, number = user
    one = state.version(name, number)
    if one is None:
        raise BrokenInvariantError("a version that has an id is gone", place=f"{name}, {number}")
    return found(state, name, one)


def users(
    state: State, schema_id: int, name: SubjectName, *, deleted: bool, reads: Reads = reads_all
) -> tuple[User, ...]:
    """Every version that has an id, in the context of `name`, sorted.

    Raises:
        NoSchemaError: there is no such id.
    """
    context = by_id(state, schema_id, name, reads=reads).name.context
    all_users = state.users.get((context, schema_id), frozenset())
    live = [u for u in all_users if deleted or not of_user(state, u).version.deleted]
    return tuple(sorted(live, key=_order))


def by_guid(state: State, guid: Guid, context: Context = DEFAULT) -> tuple[User, ...]:
    """Every version that has a content: those of a context, of the default one, then of others.

    The references of the content can be other schemas in each context.

    Raises:
        NoSchemaError: no version has it.
    """

    def distance(user: User) -> tuple[bool, bool, tuple[bytes, int]]:
        return user[0].context != context, user[0].context != DEFAULT, _order(user)

    put = state.contents.get(guid)
    found_users = [
        user for at in (put.ids if put else ()) for user in state.users.get(at, frozenset())
    ]
    if not found_users:
        raise NoSchemaError(guid)
    return tuple(sorted(found_users, key=distance))


def referrers(state: State, name: SubjectName, number: int, *, deleted: bool) -> tuple[User, ...]:
    """Versions that refer to a version, sorted."""
    found_users = state.referrers.get((name, number), frozenset())
    live = [u for u in found_users if deleted or not of_user(state, u).version.deleted]
    return tuple(sorted(live, key=_order))


def subjects(
    state: State, prefix: str, *, deleted: bool, only_deleted: bool = False
) -> tuple[SubjectName, ...]:
    """Subjects with a prefix, sorted; after `:*:` those of all contexts."""
    begin = SubjectName.parse(prefix)
    names = [
        name
        for name, versions in state.subjects.items()
        if begin.context in {EVERY, name.context}
        and name.subject.startswith(begin.subject)
        and _shows(versions, deleted=deleted, only_deleted=only_deleted)
    ]
    return tuple(sorted(names, key=lambda name: java_order(str(name))))


def _shows(versions: Versions, *, deleted: bool, only_deleted: bool) -> bool:
    gone = all(one.deleted for one in versions)
    return gone if only_deleted else deleted or not gone


def _order(user: User) -> tuple[bytes, int]:
    return java_order(str(user[0])), user[1]
