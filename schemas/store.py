"""What the registry keeps, and how it lies in a versioned store such as ZooKeeper.

    <root>/counter             the next id
    <root>/ids/<id>            the text of a schema and its content key; never changes
    <root>/contents/<key>      the id of a content; never changes
    <root>/subjects/<subject>  the versions of a subject
    <root>/level               the level for subjects that have none of their own
    <root>/levels/<subject>    the level of a subject

Every value is a JSON object with a format version. A registration is one atomic step over all the
paths that it changes, each compared with what was read: two writers never get the same id or the
same version, and a crash leaves nothing half done.
"""

import json
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, unquote

from brokers.versioned_store import (
    Create,
    Delete,
    NoSuchPathError,
    Operation,
    PathExistsError,
    Set,
    VersionConflictError,
    Versioned,
    VersionedStore,
)
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError
from pipeline.ids import SchemaId, SchemaVersion, Subject, ZnodePath
from schemas.compatibility import Level

FORMAT_VERSION = 1
_FIRST_ID = 1
_LOST_RACE = (VersionConflictError, PathExistsError, NoSuchPathError)
_LEVEL_ATTEMPTS = 10


class LostRaceError(RetryError):
    """Somebody else changed the same thing first: read again and decide again."""

    code = "lost-race"


@dataclass(frozen=True, slots=True)
class VersionEntry:
    """One version of a subject and the id of its schema."""

    version: SchemaVersion
    id: SchemaId


@dataclass(frozen=True, slots=True)
class SubjectState:
    """A subject as it was read; `stamp` is compared when it is changed, None: it did not exist."""

    subject: Subject
    versions: tuple[VersionEntry, ...]
    stamp: int | None


class SchemaStore(Protocol):
    """What the registry needs; every method may raise `UnavailableError`."""

    def subjects(self) -> tuple[Subject, ...]:
        """All subjects, sorted."""

    def subject(self, subject: Subject) -> SubjectState:
        """A subject's versions; none if it does not exist."""

    def text(self, schema_id: SchemaId) -> str | None:
        """The text of a schema."""

    def id_of(self, content_key: str) -> SchemaId | None:
        """The id of a content."""

    def add(self, state: SubjectState, text: str, content_key: str) -> VersionEntry:
        """Add a version to a subject, with a new id unless the content has one.

        Raises:
            LostRaceError: the subject or the counter of ids was changed meanwhile.
        """

    def level(self, subject: Subject | None) -> Level | None:
        """The level of a subject, or the general one for None; None if it was never set."""

    def set_level(self, subject: Subject | None, level: Level | None) -> None:
        """Set a level, or remove it with None. Of two writers the last one wins."""


def _encode(**values: object) -> bytes:
    return json.dumps({"format": FORMAT_VERSION, **values}, separators=(",", ":")).encode()


def _decode(path: str, value: bytes) -> dict[str, Any]:
    try:
        decoded = json.loads(value)
    except ValueError as error:
        raise BrokenInvariantError("damaged record of the schema registry", place=path) from error
    if not isinstance(decoded, dict) or not isinstance(decoded.get("format"), int):
        raise BrokenInvariantError("damaged record of the schema registry", place=path)
    if decoded["format"] != FORMAT_VERSION:
        raise RefusedError(
            f"the record has format {decoded['format']}, this program knows {FORMAT_VERSION}",
            place=path,
            hint="run the version of Medusa that wrote it, or a newer one.",
        )
    return decoded


def _node_name(subject: Subject) -> str:
    """A subject as one part of a path; dots alone would mean another place."""
    return quote(subject, safe="") if subject.strip(".") else "%2E" * len(subject)


def _id_name(schema_id: SchemaId) -> str:
    return f"{schema_id:010d}"


class ZnodeSchemaStore:
    """A `SchemaStore` in a versioned store, below a root path. Safe between threads if that is."""

    def __init__(self, store: VersionedStore, root: ZnodePath) -> None:
        self._store = store
        self._root = root

    def subjects(self) -> tuple[Subject, ...]:
        """All subjects, sorted."""
        names = self._store.children(f"{self._root}/subjects")
        return tuple(sorted(Subject(unquote(name)) for name in names))

    def subject(self, subject: Subject) -> SubjectState:
        """A subject's versions; none if it does not exist."""
        path = self._subject_path(subject)
        found = self._store.get(path)
        if found is None:
            return SubjectState(subject, (), None)
        entries = tuple(
            VersionEntry(SchemaVersion(entry["version"]), SchemaId(entry["id"]))
            for entry in _decode(path, found.value)["versions"]
        )
        return SubjectState(subject, entries, found.version)

    def text(self, schema_id: SchemaId) -> str | None:
        """The text of a schema."""
        path = f"{self._root}/ids/{_id_name(schema_id)}"
        found = self._store.get(path)
        return None if found is None else str(_decode(path, found.value)["schema"])

    def id_of(self, content_key: str) -> SchemaId | None:
        """The id of a content."""
        path = f"{self._root}/contents/{content_key}"
        found = self._store.get(path)
        return None if found is None else SchemaId(_decode(path, found.value)["id"])

    def add(self, state: SubjectState, text: str, content_key: str) -> VersionEntry:
        """Add a version to a subject, with a new id unless the content has one."""
        self._make_parents()
        steps: list[Operation] = []
        schema_id = self.id_of(content_key)
        if schema_id is None:
            schema_id, counter = self._next_id()
            content = _encode(id=schema_id, content=content_key, schema=text)
            steps = [
                counter,
                Create(f"{self._root}/ids/{_id_name(schema_id)}", content),
                Create(f"{self._root}/contents/{content_key}", _encode(id=schema_id)),
            ]
        last = state.versions[-1].version if state.versions else 0
        entry = VersionEntry(SchemaVersion(last + 1), schema_id)
        steps.append(self._subject_step(state, (*state.versions, entry)))
        try:
            self._store.apply(tuple(steps))
        except _LOST_RACE as error:
            raise LostRaceError(
                "another writer registered at the same moment", place=f"subject {state.subject}"
            ) from error
        return entry

    def level(self, subject: Subject | None) -> Level | None:
        """The level of a subject, or the general one for None; None if it was never set."""
        path = self._level_path(subject)
        found = self._store.get(path)
        return None if found is None else Level(_decode(path, found.value)["level"])

    def set_level(self, subject: Subject | None, level: Level | None) -> None:
        """Set a level, or remove it with None. Of two writers the last one wins."""
        self._make_parents()
        path = self._level_path(subject)
        for _ in range(_LEVEL_ATTEMPTS):
            step = _level_step(path, self._store.get(path), level)
            if step is None:
                return
            try:
                self._store.apply((step,))
            except _LOST_RACE:
                continue
            return
        raise RetryError("the level is being changed by others all the time", place=path)

    def _subject_path(self, subject: Subject) -> str:
        return f"{self._root}/subjects/{_node_name(subject)}"

    def _level_path(self, subject: Subject | None) -> str:
        if subject is None:
            return f"{self._root}/level"
        return f"{self._root}/levels/{_node_name(subject)}"

    def _make_parents(self) -> None:
        for name in ("ids", "contents", "subjects", "levels"):
            if self._store.get(f"{self._root}/{name}") is None:
                self._store.make_parents(f"{self._root}/{name}")

    def _next_id(self) -> tuple[SchemaId, Operation]:
        """The next free id, and the step that takes it."""
        path = f"{self._root}/counter"
        found = self._store.get(path)
        if found is None:
            return SchemaId(_FIRST_ID), Create(path, _encode(next_id=_FIRST_ID + 1))
        schema_id = SchemaId(_decode(path, found.value)["next_id"])
        return schema_id, Set(path, _encode(next_id=schema_id + 1), found.version)

    def _subject_step(self, state: SubjectState, versions: tuple[VersionEntry, ...]) -> Operation:
        path = self._subject_path(state.subject)
        listed = [{"version": entry.version, "id": entry.id} for entry in versions]
        value = _encode(subject=state.subject, versions=listed)
        return Create(path, value) if state.stamp is None else Set(path, value, state.stamp)


def _level_step(path: str, found: Versioned | None, level: Level | None) -> Operation | None:
    if level is None:
        return None if found is None else Delete(path, found.version)
    value = _encode(level=level.value)
    return Create(path, value) if found is None else Set(path, value, found.version)
