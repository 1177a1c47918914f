"""A full disk, and the room that followers leave on it."""

import errno
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from pipeline.errors import EnvironmentProblem
from pipeline.ids import Epoch
from pipeline.spark.run import disk
from pipeline.spark.run.checkpoints import Checkpoints
from pipeline.spark.run.disk import DiskFullError, check_room
from pipeline.spark.run.spark_errors import no_disk
from tests.unit.spark.run.test_checkpoints import FRAGMENT, LIFE, SPARK

MIB = 1 << 20
FOLDER = Path("/data/epoch-2.1-n2")


class Usage(NamedTuple):
    """Of a disk, in bytes."""

    total: int
    used: int
    free: int


def has(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    """Each disk has this size, and so much room."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(total, total - free, free))


@pytest.mark.parametrize(("total", "left"), [(1_000_000 * MIB, 256 * MIB), (1_000 * MIB, 20 * MIB)])
def test_followers_leave_room_to_lanes(
    monkeypatch: pytest.MonkeyPatch, total: int, left: int
) -> None:
    """Some, but no large part of a small disk."""
    has(monkeypatch, total, left)
    check_room(Path("/data"), FOLDER)
    free = left - MIB
    has(monkeypatch, total, free)
    with pytest.raises(DiskFullError, match=f"{free // MIB} MiB are free") as caught:
        check_room(Path("/data"), FOLDER)
    assert caught.value.place == str(FOLDER)


def test_a_folder_that_is_not_there_has_room(tmp_path: Path) -> None:
    """Making it says what is wrong."""
    check_room(tmp_path / "missing", FOLDER)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EACCES])
def test_a_full_disk_is_distinct_from_a_folder_that_cannot_be_written(number: int) -> None:
    """Both are external."""
    error = no_disk(OSError(number, "why", str(FOLDER / "offsets/3")), FOLDER)
    assert isinstance(error, EnvironmentProblem)
    assert error.external
    assert isinstance(error, DiskFullError) is (number != errno.EACCES)
    assert error.place == str(FOLDER / "offsets/3")
    assert "why" in error.message
    assert no_disk(OSError(number, "why"), FOLDER).place == str(FOLDER)


def test_a_checkpoint_that_finds_no_room_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its folder."""
    checkpoints = Checkpoints(tmp_path, FRAGMENT.names.stable, LIFE, SPARK)

    def no_room(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", no_room)
    with pytest.raises(disk.DiskFullError, match="No space left on device") as caught:
        checkpoints.empty(Epoch(3))
    assert caught.value.place == str(checkpoints.folder(Epoch(3)))
