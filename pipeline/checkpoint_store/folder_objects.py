"""Objects as files of a folder that the nodes mount.

An object is written under a temporary name and renamed, which POSIX file systems and NFS do as a
whole; a folder without atomic rename is not suitable.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from pipeline.errors import EnvironmentProblem

_UNFINISHED: Final = ".unfinished"


class FolderObjects:
    """Implements `Objects` in a folder.

    Args:
        root: the folder; it has to exist, since a file system that is not mounted looks empty.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def place(self) -> str:
        """See `Objects`."""
        return str(self._root)

    def read(self, key: str) -> bytes | None:
        """See `Objects`."""
        with self._using():
            try:
                return (self._root / key).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, key: str, content: bytes) -> None:
        """See `Objects`."""

        def fill(unfinished: Path) -> None:
            unfinished.write_bytes(content)

        self._put(key, fill)

    def send(self, key: str, source: Path) -> None:
        """See `Objects`."""

        def fill(unfinished: Path) -> None:
            shutil.copyfile(source, unfinished)

        self._put(key, fill)

    def copy(self, key: str, to: str) -> bool:
        """See `Objects`; both are one file with two names, which nobody changes."""

        def fill(unfinished: Path) -> None:
            os.link(self._root / key, unfinished)

        try:
            self._put(to, fill)
        except EnvironmentProblem:  # there is no such file, or there are no hard links
            return False
        return True

    def fetch(self, key: str, target: Path) -> bool:
        """See `Objects`."""
        with self._using():
            try:
                shutil.copyfile(self._root / key, target)
            except FileNotFoundError:
                return False
            return True

    def keys(self, prefix: str) -> tuple[str, ...]:
        """See `Objects`."""
        with self._using():
            found = (path for path in (self._root / prefix).rglob("*") if path.is_file())
            names = (path.relative_to(self._root).as_posix() for path in found)
            return tuple(sorted(names))

    def remove(self, keys: tuple[str, ...]) -> None:
        """See `Objects`; folders that are empty afterwards are removed, too."""
        with self._using():
            paths = [self._root / key for key in keys]
            for path in paths:
                path.unlink(missing_ok=True)
            for folder in {path.parent for path in paths}:
                self._remove_empty(folder)

    def remove_folder(self, folder: str) -> None:
        """See `Objects`."""
        with self._using(), suppress(FileNotFoundError):
            shutil.rmtree(self._root / folder)

    def _remove_empty(self, folder: Path) -> None:
        """Remove a folder and those above it, as long as they are empty."""
        with suppress(OSError):  # one is not, or is gone already
            while folder != self._root:
                folder.rmdir()
                folder = folder.parent

    def _put(self, key: str, fill: Callable[[Path], None]) -> None:
        with self._using():
            path = self._root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f"{path.name}.{uuid4().hex}{_UNFINISHED}")
            try:
                fill(unfinished)
                unfinished.replace(path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise

    @contextmanager
    def _using(self) -> Iterator[None]:
        try:
            if not self._root.is_dir():
                raise NotADirectoryError(f"there is no folder {self._root}")
            yield
        except OSError as error:
            raise EnvironmentProblem(
                f"the checkpoint store cannot be used: {error.strerror or error}",
                place=f"store.url {self._root}",
                hint="mount the folder, make it writable and see that it has room; lanes run on "
                "meanwhile",
            ) from error
