"""A small tree of versioned values: the seam between what we keep in ZooKeeper and ZooKeeper.

`brokers/zookeeper.py` is the real one, `brokers/memory_store.py` the in-memory twin; one conformance
suite runs against both. Values are small (a few KB); data and state never go through here.
"""

from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import RetryError


class NoSuchPathError(RetryError):
    """The path does not exist (any more)."""

    code = "no-such-path"


class PathExistsError(RetryError):
    """The path exists already: somebody else was first."""

    code = "path-exists"


class VersionConflictError(RetryError):
    """The value was changed since it was read: read again and decide again."""

    code = "version-conflict"


@dataclass(frozen=True, slots=True)
class Versioned:
    """A value and its version; the version counts up from 0 with every change."""

    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Create:
    """Make a path that must not exist; parents must exist, unless `make_parents` is used first."""

    path: str
    value: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Replace a value, only if its version is still `version`."""

    path: str
    value: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing, but fail the whole step unless the version is still `version`."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a path without children, only if its version is still `version`."""

    path: str
    version: int


Operation = Create | Set | Check | Delete


class VersionedStore(Protocol):
    """Every method raises `UnavailableError` when the server does not answer in time."""

    def get(self, path: str) -> Versioned | None:
        """The value at a path; None if the path does not exist."""

    def children(self, path: str) -> tuple[str, ...]:
        """Names directly below a path, sorted; empty if the path does not exist."""

    def make_parents(self, path: str) -> None:
        """Make the path and all its parents with empty values, as far as they are missing."""

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Do all operations or none, in one atomic step.

        Raises:
            NoSuchPathError, PathExistsError, VersionConflictError: nothing was changed.
        """

    @property
    def suspended(self) -> bool:
        """Whether the session is in doubt, so that nothing may be decided on what was read."""

    def close(self) -> None:
        """End the session; ephemeral paths of this store go."""
