"""Interface of a tree of small versioned values with compare-and-set and atomic steps.

`brokers/zookeeper.py` implements it on ZooKeeper, `tests/memory_store.py` in memory; one
conformance suite runs against both. Values have a few KB; records and state are not stored here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import BrokenInvariantError, RefusedError, RetryError

MAX_STEP_BYTES = 900_000
"""Limit of the values of one step. ZooKeeper drops the connection of a client that sends more than
1 MiB, which would appear as a network failure; so such a step is refused before it is sent."""


class NoSuchPathError(RetryError):
    """The path does not exist (any more)."""

    code = "no-such-path"


class PathExistsError(RetryError):
    """The path exists already: another client created it first."""

    code = "path-exists"


class VersionConflictError(RetryError):
    """Lost compare-and-set: the value was changed since it was read; read and decide again."""

    code = "version-conflict"


class NotEmptyError(RetryError):
    """The path still has children, so it cannot be removed."""

    code = "not-empty"


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and its version, which is 0 at first and increases by 1 with every change."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a path that must not exist; its parents must exist (see `make_parents`).

    An ephemeral path is removed when the session that created it ends; it cannot have children.
    """

    path: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replace a value if its version is still `version`; None: any version.

    Use None only for values that are always changed together with the check of another version.
    """

    path: str
    value: bytes
    version: int | None


@dataclass(frozen=True, slots=True)
class Check:
    """Fail the whole step unless the version is still `version`; changes nothing."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a path without children if its version is still `version`; None: any version.

    Use None only for values on which no decision depends, such as reports.
    """

    path: str
    version: int | None


Operation = Create | Set | Check | Delete


def check_path(path: str) -> None:
    """Check that a path is absolute and has no empty, `.` or `..` part.

    Raises:
        BrokenInvariantError: it is not such a path; names of users are validated earlier.
    """
    if path == "/":
        return
    first, *parts = path.split("/")
    bad = not parts or any(part in {"", ".", ".."} for part in parts)
    if first or bad or "\x00" in path:
        raise BrokenInvariantError(f"{path!r} is not a path of the catalog")


def check_step(operations: tuple[Operation, ...]) -> None:
    """Check paths and size of a step before it is sent.

    Raises:
        RefusedError: the values are larger than `MAX_STEP_BYTES` together.
        BrokenInvariantError: a path is invalid.
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
    """A client session; every method raises `UnavailableError` if no server answers in time."""

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""

    def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
        """The values at many paths, in their order; not an atomic snapshot."""

    def sync(self) -> None:
        """Wait until later reads contain every write that any client got acknowledged before."""

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted; empty if the path does not exist."""

    def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """The children of many paths, in their order; not an atomic snapshot."""

    def make_parents(self, path: str) -> None:
        """Create the path and its parents, as far as they are missing, with empty values."""

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Execute all operations or none, in one atomic step.

        Raises:
            NoSuchPathError, PathExistsError, VersionConflictError, NotEmptyError: nothing was
                changed.
            UnavailableError: no answer; the step may have been executed. Read to find out.
        """

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt, so that no decision may depend on values read before."""

    @property
    def session(self) -> int:
        """Changes when the session was lost: its ephemeral paths are gone and must be recreated."""

    def close(self) -> None:
        """End the session, which removes its ephemeral paths."""
