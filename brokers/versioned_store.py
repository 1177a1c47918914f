"""A small tree of versioned values: the seam between what we keep in ZooKeeper and ZooKeeper.

`brokers/zookeeper.py` is the real one, `tests/memory_store.py` the in-memory twin; one
conformance suite runs against both. Values are small (a few KB); data and state never go through
here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import BrokenInvariantError, RefusedError, RetryError

MAX_STEP_BYTES = 900_000
"""Limit of the values of one step. ZooKeeper drops the connection of whoever sends more than 1 MiB,
which would look like a broken network; so it is refused before it is sent."""


class NoSuchPathError(RetryError):
    """The path does not exist (any more)."""

    code = "no-such-path"


class PathExistsError(RetryError):
    """The path exists already: somebody else was first."""

    code = "path-exists"


class VersionConflictError(RetryError):
    """The value was changed since it was read: read again and decide again."""

    code = "version-conflict"


class NotEmptyError(RetryError):
    """The path still has children, so it cannot be removed."""

    code = "not-empty"


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and its version; the version counts up from 0 with every change."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Make a path that must not exist; parents must exist, unless `make_parents` is used first.

    An ephemeral path goes when the session that made it ends, and cannot have children.
    """

    path: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replace a value, only if its version is still `version`; None: any version.

    Any version is for values that are changed only in a step which compares another one.
    """

    path: str
    value: bytes
    version: int | None


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but fail the whole step unless the version is still `version`."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a path without children, only if its version is still `version`; None: any version.

    Any version is for values whose changes decide nothing, such as reports.
    """

    path: str
    version: int | None


Operation = Create | Set | Check | Delete


def check_path(path: str) -> None:
    """Make sure that a path is absolute and has no empty, `.` or `..` part.

    Raises:
        BrokenInvariantError: names in paths are checked long before they come here.
    """
    if path == "/":
        return
    first, *parts = path.split("/")
    bad = not parts or any(part in {"", ".", ".."} for part in parts)
    if first or bad or "\x00" in path:
        raise BrokenInvariantError(f"{path!r} is not a path of the catalog")


def check_step(operations: tuple[Operation, ...]) -> None:
    """Check paths and size of a step before it is sent anywhere.

    Raises:
        RefusedError: the values are larger than `MAX_STEP_BYTES` together.
        BrokenInvariantError: a path is not one.
    """
    size = 0
    for operation in operations:
        check_path(operation.path)
        if isinstance(operation, Create | Set):
            size += len(operation.value)
    if size > MAX_STEP_BYTES:
        raise RefusedError(
            f"{size} bytes in one step of the catalog, at most {MAX_STEP_BYTES} are possible",
            place=operations[0].path,
            hint="split the network document, or shorten its schemas.",
        )


class VersionedStore(Protocol):
    """Every method raises `UnavailableError` when the server does not answer in time."""

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """The values at many paths, in their order; each on its own, not all at one moment."""

    def sync(self) -> None:
        """Read nothing from now on that is older than what was acknowledged to anybody by now."""

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted; empty if the path does not exist."""

    def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The same for many paths, in their order; each on its own, not all at one moment."""

    def make_parents(self, path: str) -> None:
        """Make the path and all its parents with empty values, as far as they are missing."""

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Do all operations or none, in one atomic step.

        Raises:
            NoSuchPathError, PathExistsError, VersionConflictError, NotEmptyError: nothing was
                changed.
            UnavailableError: no answer; the step may or may not have been done. Read to find out.
        """

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt, so that nothing may be decided on what was read."""

    @property
    def session(self) -> int:
        """Changes when the session was lost: its ephemeral paths are gone; make them again."""

    def close(self) -> None:
        """End the session; ephemeral paths of this store go."""
