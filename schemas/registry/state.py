"""State of a registry at one revision: an immutable value. Pure.

A change puts or removes one record; the store has the same records (`journal.py`). The state also
contains indexes over them: users of ids, referrers of versions.
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
        deleted: soft-deleted: it is hidden, but its schema can still be read by its id.
        at_ms: time of its last change, ms since 1970.
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
"""The ids of one content; registrations return the first one of their context."""
User: TypeAlias = tuple[SubjectName, int]
"""A version of a subject."""


@dataclass(frozen=True, slots=True)
class SubjectPut:
    """The new versions of a subject; without any the subject is removed."""

    name: SubjectName
    versions: Versions


@dataclass(frozen=True, slots=True)
class ContentPut:
    """A content and its ids. Unused contents are not removed, and keep their ids."""

    guid: Guid
    content: Content
    ids: Ids


@dataclass(frozen=True, slots=True)
class ConfigPut:
    """The new configuration of a scope."""

    name: SubjectName
    config: Config | None


@dataclass(frozen=True, slots=True)
class ModePut:
    """The new mode of a scope."""

    name: SubjectName
    mode: Mode | None


Change: TypeAlias = SubjectPut | ContentPut | ConfigPut | ModePut


@dataclass(frozen=True, slots=True)
class Decided(Generic[T]):
    """The answer of a decision, and its changes."""

    answer: T
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """State of a registry at one revision."""

    subjects: Map[SubjectName, Versions] = field(default_factory=Map)
    contents: Map[Guid, ContentPut] = field(default_factory=Map)
    configs: Map[SubjectName, Config] = field(default_factory=Map)
    modes: Map[SubjectName, Mode] = field(default_factory=Map)
    guids: Map[tuple[Context, int], Guid] = field(default_factory=Map)
    last_ids: Map[Context, int] = field(default_factory=Map)
    users: Map[tuple[Context, int], frozenset[User]] = field(default_factory=Map)
    referrers: Map[User, frozenset[User]] = field(default_factory=Map)

    def after(self, changes: Iterable[Change]) -> "State":
        """The state after changes, applied in order."""
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
        """Versions of a subject, oldest first; `deleted`: including deleted ones."""
        found = self.subjects.get(name, ())
        return found if deleted else tuple(one for one in found if not one.deleted)

    def version(self, name: SubjectName, number: int) -> Version | None:
        """One version of a subject, deleted or not."""
        found = self.subjects.get(name, ())
        at = bisect_left(found, number, key=lambda one: one.number)
        return found[at] if at < len(found) and found[at].number == number else None

    def content(self, guid: Guid) -> Content:
        """The content of a GUID."""
        return self.contents[guid].content

    def next_id(self, context: Context) -> int | None:
        """The id of the next new content of a context; None: all ids are used.

        It is one above the highest id whose successor is free. So an imported id at the end of the
        range does not exhaust the ids below it; and no id is used twice, since none becomes free.
        """
        last = self.last_ids.get(context, 0)
        if last < INT_MAX:
            return last + 1
        given = {number for place, number in self.guids if place == context}
        above = (number + 1 for number in (0, *given) if number < INT_MAX)
        return max((number for number in above if number not in given), default=None)

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Contexts with schemas: the default one always and first, the others sorted."""
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
        return ((name.resolve(r.subject), r.version) for r in references)

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
