"""What a sink of files does to a folder: every change is on the disk when its call returns."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from pipeline.clock import Clock, Deadline
from pipeline.errors import UnavailableError

LOCK_WAIT_S = 0.05


class Disk(Protocol):
    """A folder; names are relative to it. Every method may raise `UnavailableError`."""

    @contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Exclude other processes; a lock ends with its process.

        Raises:
            RetryError: another one holds it until the deadline.
        """

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder below, sorted."""

    def read(self, name: str) -> bytes | None:
        """The content of a file; None: there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and wait until it is on the disk. After a crash it may have any part."""

    def rename(self, old: str, new: str) -> None:
        """Rename a file, and wait until that is on the disk. Replaces a file of the new name."""

    def remove(self, name: str) -> None:
        """Remove a file, if there is one."""


class LocalDisk:
    """A folder of this machine, made if it does not exist."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    @contextmanager
    def locked(self, deadline: Deadline) -> Iterator[None]:
        """Lock a file in the folder."""
        with _translated(self._folder):
            lock = self._folder / ".medusa" / "lock"
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("ab")
        with file:
            while not _taken(file.fileno()):
                deadline.check("another process writes into the folder.")
                self._clock.sleep(LOCK_WAIT_S)
            yield

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder below, sorted."""
        with _translated(self._folder):
            return tuple(sorted(one.name for one in (self._folder / folder).iterdir()))

    def read(self, name: str) -> bytes | None:
        """The content of a file."""
        with _translated(self._folder):
            try:
                return (self._folder / name).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a file."""
        with _translated(self._folder), (self._folder / name).open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, old: str, new: str) -> None:
        """Rename a file; both folders are synchronised."""
        with _translated(self._folder):
            (self._folder / old).replace(self._folder / new)
            for folder in {(self._folder / name).parent for name in (old, new)}:
                number = os.open(folder, os.O_RDONLY)
                try:
                    os.fsync(number)
                finally:
                    os.close(number)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _translated(self._folder):
            (self._folder / name).unlink(missing_ok=True)


def _taken(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UnavailableError(
            f"the folder cannot be used: {error.strerror}",
            place=f"folder {folder}",
            hint="is there room on the disk, and may this user write there?",
        ) from error
