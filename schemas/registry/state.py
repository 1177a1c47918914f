"""All that a registry knows at one revision, as one immutable value. Pure.

A change is one record put or removed; the same records lie in the store (`journal.py`). What can be
derived from them, who uses an id and who refers to whom, is kept beside them up to date.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeAlias, TypeVar

from immutables import Map

from schemas.registry.config import Config, Mode
from schemas.registry.content import Content, Guid, Reference
from schemas.registry.names import Context, SubjectName
from schemas.types import INT_MAX


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a subject.

    Args:
        deleted: softly: it is hidden, and its schema can still be read by its id.
        at_ms: when it last changed, ms since 1970.
    """

    number: int
    id: int
    guid: Guid
    at_ms: int
    deleted: bool = False


T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Versions: TypeAlias = tuple[Version, ...]
"""Of one subject, oldest first."""
Ids: TypeAlias = tuple[tuple[Context, int], ...]
"""The ids of one content: the first of a context is the one that registering gives."""
User: TypeAlias = tuple[SubjectName, int]
"""A version of a subject."""


@dataclass(frozen=True, slots=True)
class SubjectPut:
    """A subject's versions from now on; without any the subject is gone."""

    name: SubjectName
    versions: Versions


@dataclass(frozen=True, slots=True)
class ContentPut:
    """A content and its ids. A content stays when nothing uses it any more: so does its id."""

    guid: Guid
    content: Content
    ids: Ids


@dataclass(frozen=True, slots=True)
class ConfigPut:
    """The configuration of a scope from now on."""

    name: SubjectName
    config: Config | None


@dataclass(frozen=True, slots=True)
class ModePut:
    """The mode of a scope from now on."""

    name: SubjectName
    mode: Mode | None


Change: TypeAlias = SubjectPut | ContentPut | ConfigPut | ModePut


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """What a decision answers, and what has to change for that to be true."""

    answer: T
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """A registry at one revision."""

    subjects: Map[SubjectName, Versions] = field(default_factory=Map)
    contents: Map[Guid, ContentPut] = field(default_factory=Map)
    configs: Map[SubjectName, Config] = field(default_factory=Map)
    modes: Map[SubjectName, Mode] = field(default_factory=Map)
    guids: Map[tuple[Context, int], Guid] = field(default_factory=Map)
    last_ids: Map[Context, int] = field(default_factory=Map)
    users: Map[tuple[Context, int], frozenset[User]] = field(default_factory=Map)
    referrers: Map[User, frozenset[User]] = field(default_factory=Map)

    def after(self, changes: Iterable[Change]) -> "State":
        """The state with changes made, in their order."""
        state = self
        for change in changes:
            match change:
                case SubjectPut():
                    state = state._with_subject(change)
                case ContentPut():
                    state = state._with_content(change)  # noqa: SLF001 - of this class
                case ConfigPut(name, config):
                    state = replace(state, configs=_put(state.configs, name, config))
                case ModePut(name, mode):
                    state = replace(state, modes=_put(state.modes, name, mode))
        return state

    def versions(self, name: SubjectName, *, deleted: bool = False) -> Versions:
        """Versions of a subject that are visible, oldest first."""
        found = self.subjects.get(name, ())
        return found if deleted else tuple(one for one in found if not one.deleted)

    def version(self, name: SubjectName, number: int) -> Version | None:
        """One version of a subject, deleted or not."""
        found = self.subjects.get(name, ())
        at = bisect_left(found, number, key=lambda one: one.number)
        return found[at] if at < len(found) and found[at].number == number else None

    def content(self, guid: Guid) -> Content:
        """A content that some version has."""
        return self.contents[guid].content

    def next_id(self, context: Context) -> int | None:
        """The id that the next new content of a context gets; None: all are given.

        It is one above the highest that leaves room. So an id at the very end, which somebody
        imported, does not end the counting below; and no id is given twice, since none gets free.
        """
        last = self.last_ids.get(context, 0)
        if last < INT_MAX:
            return last + 1
        given = {number for place, number in self.guids if place == context}
        above = (number + 1 for number in (0, *given) if number < INT_MAX)
        return max((number for number in above if number not in given), default=None)

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Contexts that hold schemas, the default one always and first, the others sorted."""
        from_names = {name.context for name in self.subjects}
        others = sorted(from_names - {Context(".")})
        return (Context("."), *others)

    # --- one record at a time -------------------------------------------------------------------

    def _with_subject(self, change: SubjectPut) -> "State":
        name, users, referrers = change.name, self.users, self.referrers
        before = self.subjects.get(name, ())
        both = frozenset(before).intersection(change.versions)
        for one in before:
            if one in both:
                continue
            users = _without(users, (name.context, one.id), (name, one.number))
            for at in self._targets(name, one):
                referrers = _without(referrers, at, (name, one.number))
        for one in change.versions:
            if one in both:
                continue
            users = _with(users, (name.context, one.id), (name, one.number))
            for at in self._targets(name, one):
                referrers = _with(referrers, at, (name, one.number))
        subjects = _put(self.subjects, name, change.versions or None)
        return replace(self, subjects=subjects, users=users, referrers=referrers)

    def _targets(self, name: SubjectName, version: Version) -> Iterable[User]:
        references: tuple[Reference, ...] = self.content(version.guid).references
        return ((name.beside(r.subject), r.version) for r in references)

    def _with_content(self, change: ContentPut) -> "State":
        guids, last_ids = self.guids, self.last_ids
        before = self.contents.get(change.guid)
        for at in before.ids if before else ():
            guids = _put(guids, at, None) if guids.get(at) == change.guid else guids
        for context, number in change.ids:
            guids = guids.set((context, number), change.guid)
            last_ids = last_ids.set(context, max(number, last_ids.get(context, 0)))
        contents = self.contents.set(change.guid, change)
        return replace(self, contents=contents, guids=guids, last_ids=last_ids)


def _put(where: Map[K, V], key: K, value: V | None) -> Map[K, V]:
    if value is not None:
        return where.set(key, value)
    return where.delete(key) if key in where else where


def _with(where: Map[K, frozenset[User]], key: K, user: User) -> Map[K, frozenset[User]]:
    return where.set(key, where.get(key, frozenset()) | {user})


def _without(where: Map[K, frozenset[User]], key: K, user: User) -> Map[K, frozenset[User]]:
    left = where.get(key, frozenset()) - {user}
    return _put(where, key, left or None)
