"""In-memory implementation of the versioned store, for tests.

A `MemoryTree` is the shared server. A `MemoryStore` is one session on it, with its own ephemeral
paths. Both behave as ZooKeeper does; `tests/conformance` checks it.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from brokers.versioned_store import (
    Check,
    Create,
    Delete,
    NoSuchPathError,
    NotEmptyError,
    Operation,
    PathExistsError,
    Set,
    VersionConflictError,
    Versioned,
    check_path,
    check_step,
)
from pipeline.errors import BrokenInvariantError, UnavailableError

_ROOT = "/"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A value, its version and the session of an ephemeral path; None: persistent."""

    value: bytes
    version: int
    session: int | None


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or _ROOT


def _has_children(entries: Mapping[str, _Entry], path: str) -> bool:
    return any(other != _ROOT and _parent(other) == path for other in entries)


def _expect(entries: Mapping[str, _Entry], path: str, version: int | None) -> _Entry:
    entry = entries.get(path)
    if entry is None:
        raise NoSuchPathError("the path does not exist", place=path)
    if version is not None and entry.version != version:
        raise VersionConflictError(f"expected version {version}, found {entry.version}", place=path)
    return entry


def _create(entries: dict[str, _Entry], operation: Create, session: int) -> None:
    if operation.path in entries:
        raise PathExistsError("the path exists already", place=operation.path)
    parent = entries.get(_parent(operation.path))
    if parent is None:
        raise NoSuchPathError("the parent path does not exist", place=operation.path)
    if parent.session is not None:
        raise BrokenInvariantError("an ephemeral path has no children", place=operation.path)
    owner = session if operation.ephemeral else None
    entries[operation.path] = _Entry(operation.value, 0, owner)


def _perform(entries: dict[str, _Entry], operation: Operation, session: int) -> None:
    match operation:
        case Create():
            _create(entries, operation, session)
        case Set(path, value, version):
            entry = _expect(entries, path, version)
            entries[path] = replace(entry, value=value, version=entry.version + 1)
        case Check(path, version):
            _expect(entries, path, version)
        case Delete(path, version):
            _expect(entries, path, version)
            if _has_children(entries, path):
                raise NotEmptyError("the path has children", place=path)
            del entries[path]


class MemoryTree:
    """The tree that all sessions share; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {_ROOT: _Entry(b"", 0, None)}
        self._children: dict[str, tuple[str, ...]] = {}
        """Of the paths whose children were read since the last change."""
        self._next_session = 1

    def open_session(self) -> int:
        """Open a session; returns its number."""
        with self._lock:
            session = self._next_session
            self._next_session += 1
            return session

    def end_session(self, session: int) -> None:
        """Delete the ephemeral paths of a session."""
        with self._lock:
            self._replace(
                {path: entry for path, entry in self._entries.items() if entry.session != session}
            )

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""
        with self._lock:
            entry = self._entries.get(path)
        return None if entry is None else Versioned(entry.value, entry.version)

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted."""
        with self._lock:
            if path not in self._children:
                below = (one for one in self._entries if one != _ROOT and _parent(one) == path)
                self._children[path] = tuple(sorted(one.rpartition("/")[2] for one in below))
            return self._children[path]

    def make_parents(self, path: str, session: int) -> None:
        """Create the path and its parents where missing."""
        with self._lock:
            entries = dict(self._entries)
            done = ""
            for part in path.strip("/").split("/"):
                done = f"{done}/{part}"
                if done not in entries:
                    _create(entries, Create(done, b""), session)
            self._replace(entries)

    def apply(self, operations: tuple[Operation, ...], session: int) -> None:
        """Perform all operations or none; later ones see the effects of earlier ones."""
        with self._lock:
            entries = dict(self._entries)
            for operation in operations:
                _perform(entries, operation, session)
            self._replace(entries)

    def _replace(self, entries: dict[str, _Entry]) -> None:
        self._entries = entries
        self._children = {}


class MemoryStore:
    """One session on a `MemoryTree`; a `VersionedStore`.

    `suspend`, `resume` and `expire` simulate a network's effects on a real session.
    """

    def __init__(self, tree: MemoryTree) -> None:
        self._tree = tree
        self._session = tree.open_session()
        self._suspended = False
        self._closed = False

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""
        self._check_usable()
        check_path(path)
        return self._tree.get(path)

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """The values at many paths, in their order."""
        return tuple(self.get(path) for path in paths)

    def sync(self) -> None:
        """Do nothing: there is only one copy of the data."""
        self._check_usable()

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted; empty if the path does not exist."""
        self._check_usable()
        check_path(path)
        return self._tree.children(path)

    def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Children of many paths, in their order."""
        return tuple(self.children(path) for path in paths)

    def make_parents(self, path: str) -> None:
        """Create the path and its parents with empty values where missing."""
        self._check_usable()
        check_path(path)
        if path != _ROOT:
            self._tree.make_parents(path, self._session)

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Perform all operations or none, in one atomic step."""
        self._check_usable()
        check_step(operations)
        self._tree.apply(operations, self._session)

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt."""
        return self._suspended

    @property
    def session(self) -> int:
        """The number of the session; a new one after `expire`."""
        return self._session

    def close(self) -> None:
        """End the session and delete its ephemeral paths. Idempotent."""
        if not self._closed:
            self._closed = True
            self._tree.end_session(self._session)

    def suspend(self) -> None:
        """Lose the connection: every call raises UnavailableError until `resume` or `expire`."""
        self._suspended = True

    def resume(self) -> None:
        """Restore the connection, with the same session."""
        self._suspended = False

    def expire(self) -> None:
        """Replace the session by a new one; its ephemeral paths are deleted."""
        self._tree.end_session(self._session)
        self._session = self._tree.open_session()
        self._suspended = False

    def _check_usable(self) -> None:
        if self._closed:
            raise UnavailableError("the session is closed", place="catalog")
        if self._suspended:
            raise UnavailableError(
                "the connection to the catalog is suspended",
                place="catalog",
                hint="it goes on by itself when the server answers again.",
            )
