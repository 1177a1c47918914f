"""Consistent copy of a checkpoint folder by hard links, while its owner may still write.

Spark writes every file that it reads again under a temporary name and renames it when it is
complete, or, RocksDB's data files, under a unique name before a file that refers to them. So a
visible file never changes, and a copy is consistent if it is made in the opposite order of writing:

    commits     the newest, n, is the last batch of the copy
    offsets     those up to n + 1: batch n + 1 may be planned, later batches are not copied
    state       all of n was complete before commits/n; in each folder files go before folders,
                since a snapshot refers to data files in a folder below it

An owner also deletes files of batches that are BATCHES_RETAINED or more behind. The copy needs none
of them if the owner has finished at most PROGRESS_MAX batches meanwhile, which is checked at the
end.
"""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from pipeline.spark.session.session import BATCHES_RETAINED

PROGRESS_MAX: Final = BATCHES_RETAINED // 2
"""Maximum number of batches that the owner may finish while its folder is linked."""
_COMMITS: Final = "commits"
OFFSETS: Final = "offsets"
"""The folder with the plans of batches."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Names of the entries of a folder."""

    files: tuple[str, ...]
    folders: tuple[str, ...]


class Disk(Protocol):
    """File system operations of the copy."""

    def entries(self, folder: Path) -> Entries:
        """The entries of a folder; none if it does not exist."""

    def link(self, source: Path, target: Path) -> None:
        """Link a file into another folder, which is created if needed.

        Raises:
            FileNotFoundError: the file no longer exists.
        """


class LocalDisk:
    """Hard links; copies if the file system does not support them."""

    def entries(self, folder: Path) -> Entries:
        """See `Disk`."""
        files: list[str] = []
        folders: list[str] = []
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return Entries((), ())
        return Entries(tuple(sorted(files)), tuple(sorted(folders)))

    def link(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copy2(source, target)


def link_checkpoint(source: Path, target: Path, without: frozenset[str], disk: Disk) -> bool:
    """Link the files of a checkpoint folder into an empty one.

    Args:
        source: the folder; its owner may be writing.
        target: the empty folder.
        without: files at the top of the source that are not part of the checkpoint.
        disk: the file system.

    Returns:
        Whether the copy is consistent; if not, another attempt may be.
    """
    try:
        committed = _link_commits(source, target, disk)
        _link_offsets(source, target, committed + 1, disk)
        _link_rest(source, target, {_COMMITS, OFFSETS, *without}, disk)
    except FileNotFoundError:
        return False
    moved_on = newest(disk.entries(source / _COMMITS).files) - committed
    return 0 <= moved_on <= PROGRESS_MAX


def committed(folder: Path) -> int:
    """The last batch that Spark has committed in a checkpoint; -1: there is none."""
    return newest(LocalDisk().entries(folder / _COMMITS).files)


def newest(names: tuple[str, ...]) -> int:
    """The largest number among the names of log files; -1 if there is none."""
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def _link_commits(source: Path, target: Path, disk: Disk) -> int:
    names = disk.entries(source / _COMMITS).files
    for name in _complete(names):
        disk.link(source / _COMMITS / name, target / _COMMITS / name)
    return newest(names)


def _link_offsets(source: Path, target: Path, last: int, disk: Disk) -> None:
    for name in _complete(disk.entries(source / OFFSETS).files):
        if not name.isdecimal() or int(name) <= last:
            disk.link(source / OFFSETS / name, target / OFFSETS / name)


def _link_rest(source: Path, target: Path, without: set[str], disk: Disk) -> None:
    found = disk.entries(source)
    for name in _complete(found.files):
        if name not in without:
            disk.link(source / name, target / name)
    for name in found.folders:
        if name not in without:
            _link_rest(source / name, target / name, set(), disk)


def _complete(names: tuple[str, ...]) -> list[str]:
    """Without temporary files and checksums."""
    return [name for name in names if not name.startswith(".") and not name.endswith(".tmp")]
