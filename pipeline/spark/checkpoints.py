"""Checkpoint folders: one per epoch, so that a zombie can spoil only its own.

A start under a new epoch links the files of the last epoch's folder into a new one. Spark never
changes a checkpoint file once it is complete, so a link is as good as a copy and takes no space;
what a zombie still writes or deletes in its own folder does not touch the links.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.errors import BrokenInvariantError, EnvironmentProblem
from pipeline.ids import BatchId, Epoch, Incarnation
from pipeline.lanes.positions import Positions
from pipeline.lanes.start import CheckpointFacts, PlannedBatch, Unusable
from pipeline.names import FragmentNames
from pipeline.spark.facts import positions
from pipeline.spark.lowered import Lowered

FORMAT_VERSION = 1
"""Of a folder, and of what our queries keep in it: counts up when the same plan would make another
state, or number its sources otherwise. A folder of another format is not read."""
_IDENTITY = "medusa.json"
_SET_ASIDE = "medusa.damaged.json"
_KEPT_EPOCHS = 2


class Checkpoints:
    """The checkpoint folders of one fragment below a node's checkpoint root.

    `spark` is the version of the engine that writes them.
    """

    def __init__(self, root: Path, names: FragmentNames, spark: str) -> None:
        self._root = root
        self._names = names
        self._spark = spark

    def folder(self, epoch: Epoch) -> Path:
        """Where the lane of an epoch keeps its checkpoint."""
        return self._root / self._names.checkpoint(epoch)

    def any(self, before: Epoch) -> Path | None:
        """The newest complete folder of an earlier epoch."""
        return next(iter(self._complete(before)), None)

    def of(self, incarnation: Incarnation, before: Epoch) -> Path | None:
        """The newest complete folder of an earlier epoch that belongs to an incarnation."""
        return next((f for f in self._complete(before) if _incarnation(f) == incarnation), None)

    def link(self, epoch: Epoch, source: Path) -> Path:
        """Make the folder of an epoch that goes on where an earlier epoch's folder stands."""
        with _writing(self.folder(epoch)):
            folder = self._emptied(epoch)
            _link_tree(source, folder)
        return folder

    def empty(self, epoch: Epoch) -> Path:
        """Make the empty folder of an epoch."""
        with _writing(self.folder(epoch)):
            return self._emptied(epoch)

    def complete(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """Say to which incarnation the folder of an epoch belongs: from now on it counts."""
        folder = self.folder(epoch)
        with _writing(folder):
            identity = {
                "format": FORMAT_VERSION,
                "incarnation": incarnation,
                "spark": self._spark,
            }
            (folder / _IDENTITY).write_text(json.dumps(identity), encoding="utf-8")
            for old in self._complete(epoch)[_KEPT_EPOCHS - 1 :]:
                shutil.rmtree(old, ignore_errors=True)

    def set_aside(self, epoch: Epoch) -> None:
        """Let a folder that turned out to be damaged count no more; it stays for inspection.

        Earlier folders of the same incarnation share its files, so they go with it.
        """
        damaged = _incarnation(self.folder(epoch))
        for folder in self._complete(Epoch(epoch + 1)):
            if _incarnation(folder) == damaged:
                with _writing(folder):
                    (folder / _IDENTITY).rename(folder / _SET_ASIDE)

    def _emptied(self, epoch: Epoch) -> Path:
        folder = self.folder(epoch)
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
        return folder

    def _complete(self, before: Epoch) -> list[Path]:
        """Earlier folders with an identity, newest first; it is written last of all."""
        limit = self.folder(before)
        found = (path.parent for path in limit.parent.glob(f"epoch-*/{_IDENTITY}"))
        return sorted((path for path in found if path.name < limit.name), reverse=True)


def read_facts(folder: Path, lowered: Lowered, spark: str) -> CheckpointFacts | Unusable:
    """What a complete checkpoint folder holds, or why it says nothing.

    Args:
        folder: the folder.
        lowered: the fragment.
        spark: the version of the engine that would go on with it.
    """
    identity = _identity(folder)
    if identity is None:
        return Unusable(f"the checkpoint {folder.name} does not say whose it is")
    try:
        committed = _last_number(folder / "commits")
        number = _last_number(folder / "offsets")
        planned = None
        if number is not None:
            planned = PlannedBatch(BatchId(number), _planned(folder, number, lowered))
    except (OSError, ValueError, BrokenInvariantError) as error:
        return Unusable(f"the checkpoint {folder.name} cannot be read: {error}")
    return CheckpointFacts(
        incarnation=identity.incarnation,
        foreign=""
        if identity.spark == spark
        else f"{_written_by(identity)} wrote the checkpoint, this is Spark {spark}",
        committed=None if committed is None else BatchId(committed),
        planned=planned,
    )


def _planned(folder: Path, batch: int, lowered: Lowered) -> Positions:
    """The end positions of a planned batch: a version, Spark's metadata, a line for each path.

    Raises:
        ValueError: the file is not whole.
    """
    text = (folder / "offsets" / str(batch)).read_text(encoding="utf-8")
    _, *lines = text.splitlines() or [""]
    if len(lines) != 1 + len(lowered.paths):
        raise ValueError(f"offsets/{batch} is not whole")
    json.loads(lines[0])
    return positions([json.loads(line) for line in lines[1:]], lowered)


@dataclass(frozen=True, slots=True)
class _Identity:
    """Whose a folder is, and which Spark wrote it; None: a version of ours that did not say so."""

    incarnation: Incarnation
    spark: str | None


def _identity(folder: Path) -> _Identity | None:
    """None if it cannot be read, or is in another format."""
    try:
        found = json.loads((folder / _IDENTITY).read_text(encoding="utf-8"))
        if found["format"] != FORMAT_VERSION:
            return None
        return _Identity(Incarnation(str(found["incarnation"])), found.get("spark"))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _written_by(identity: _Identity) -> str:
    return f"Spark {identity.spark}" if identity.spark else "an unknown Spark"


def _incarnation(folder: Path) -> Incarnation | None:
    identity = _identity(folder)
    return None if identity is None else identity.incarnation


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentProblem(
            f"the checkpoint cannot be written: {error.strerror}",
            place=str(folder),
            hint="make the folder writable, or point `checkpoints` at another one",
        ) from error


def _last_number(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()]
    return max(numbers, default=None)


def _link_tree(source: Path, target: Path) -> None:
    for path in _complete_files(source):
        to = target / path.relative_to(source)
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, to)
        except FileNotFoundError:
            continue  # cleaned up by its owner while we looked; a needed file would stop the start
        except OSError:
            shutil.copy2(path, to)  # another file system


def _complete_files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        unfinished = path.name.startswith(".") or path.name.endswith(".tmp")
        if path.is_file() and not unfinished and path.name != _IDENTITY:
            yield path
