"""A full disk, as the operating system and Java report it; the room that followers leave on it."""

import errno
import shutil
from pathlib import Path
from typing import Final

from pipeline.errors import EnvironmentProblem
from pipeline.sizes import UNITS_BYTES

_MIB: Final = UNITS_BYTES["MiB"]
ROOM_BYTES: Final = 256 * _MIB
ROOM_SHARE: Final = 50
"""Followers leave this part of a disk to lanes, at most `ROOM_BYTES`."""
SIGNS: Final = ("No space left on device", "Disk quota exceeded", "File too large")
"""What Java says of a full disk, or of a limit of its user, as the system names it."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_HINT: Final = (
    "free some room on the disk of the checkpoints or of `spark.local.dir`; the fragment goes on "
    "by itself then"
)


class DiskFullError(EnvironmentProblem):
    """A disk has no room left for a checkpoint."""

    code = "disk-full"


def is_full(error: OSError) -> bool:
    """Whether a disk is full, or a limit of its user is reached."""
    return error.errno in _FULL


def full(what: str, folder: Path | str = "") -> DiskFullError:
    """The error of a full disk; `what`: what it says."""
    return DiskFullError(f"the disk is full: {what}", place=str(folder), hint=_HINT)


def check_room(root: Path, folder: Path) -> None:
    """Check that a disk has room that a follower may use: a lane on it stops if it is full.

    Args:
        root: a folder on it.
        folder: the one to be named in the error.

    Raises:
        DiskFullError: it has too little.
    """
    try:
        found = shutil.disk_usage(root)
    except OSError:  # it does not exist yet, or does not answer: writing says why
        return
    left = min(ROOM_BYTES, found.total // ROOM_SHARE)
    if found.free < left:
        what = f"{found.free // _MIB} MiB are free, {left // _MIB} MiB are left to lanes"
        raise full(what, folder)
