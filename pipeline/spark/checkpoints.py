"""Checkpoint folders: one per epoch, so that a zombie can spoil only its own.

A start under a new epoch links the files of the last epoch's folder into a new one. Spark never
changes a checkpoint file once it is complete, so a link is as good as a copy and takes no space;
what a zombie still writes or deletes in its own folder does not touch the links.
"""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pipeline.errors import BrokenInvariantError, EnvironmentProblem
from pipeline.ids import BatchId, Epoch, Incarnation
from pipeline.lanes.start import CheckpointFacts, PlannedBatch
from pipeline.names import FragmentNames
from pipeline.spark.facts import positions
from pipeline.spark.lowered import Lowered

FORMAT_VERSION = 1
_IDENTITY = "medusa.json"
_KEPT_EPOCHS = 2


class Checkpoints:
    """The checkpoint folders of one fragment below a node's checkpoint root."""

    def __init__(self, root: Path, names: FragmentNames) -> None:
        self._root = root
        self._names = names

    def folder(self, epoch: Epoch) -> Path:
        """Where the lane of an epoch keeps its checkpoint."""
        return self._root / self._names.checkpoint(epoch)

    def newest(self, before: Epoch) -> Path | None:
        """The folder of the last epoch before this one that left a complete one."""
        folders = [path for path in self._complete() if path.name < self.folder(before).name]
        return folders[-1] if folders else None

    def create(
        self, epoch: Epoch, incarnation: Incarnation, digest: str, source: Path | None
    ) -> Path:
        """Make the folder of an epoch, empty or from an earlier epoch's folder.

        `digest` is that of the fragment's plan: state fits only the plan that made it.
        """
        folder = self.folder(epoch)
        try:
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
            if source is not None:
                _link_tree(source, folder)
            identity = {"format": FORMAT_VERSION, "incarnation": incarnation, "digest": digest}
            (folder / _IDENTITY).write_text(json.dumps(identity), encoding="utf-8")
            for old in self._complete()[:-_KEPT_EPOCHS]:
                shutil.rmtree(old, ignore_errors=True)
        except OSError as error:
            raise EnvironmentProblem(
                f"the checkpoint cannot be written: {error.strerror}",
                place=str(folder),
                hint="make the folder writable, or point `checkpoints` at another one",
            ) from error
        return folder

    def _complete(self) -> list[Path]:
        """Folders with an identity, which is written last, so that half a copy does not count."""
        parent = self.folder(Epoch(0)).parent
        return sorted(path.parent for path in parent.glob(f"epoch-*/{_IDENTITY}"))


def read_facts(folder: Path, lowered: Lowered) -> tuple[CheckpointFacts, str] | None:
    """What a checkpoint folder holds, and the digest of its plan; None if it holds no identity.

    Raises:
        BrokenInvariantError: a file in it cannot be understood.
    """
    identity_file = folder / _IDENTITY
    if not identity_file.is_file():
        return None
    try:
        identity = json.loads(identity_file.read_text(encoding="utf-8"))
        if identity["format"] != FORMAT_VERSION:
            raise BrokenInvariantError(
                f"the checkpoint has format {identity['format']}, this version reads "
                f"{FORMAT_VERSION}",
                place=str(folder),
            )
        committed = _last_number(folder / "commits")
        number = _last_number(folder / "offsets")
        planned = None
        if number is not None:
            lines = (folder / "offsets" / str(number)).read_text(encoding="utf-8").splitlines()
            planned = PlannedBatch(BatchId(number), positions(lines[2:], lowered))
        facts = CheckpointFacts(
            incarnation=Incarnation(identity["incarnation"]),
            committed=None if committed is None else BatchId(committed),
            planned=planned,
        )
    except (OSError, ValueError, KeyError) as error:
        raise BrokenInvariantError(
            f"the checkpoint cannot be read: {error}",
            place=str(folder),
            hint="keep the folder for inspection; the fragment cannot continue from it",
        ) from error
    return facts, str(identity["digest"])


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
