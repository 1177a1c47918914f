"""Checkpoint folders: one per epoch, so that a zombie can damage only its own.

A start under a new epoch links the files of the last epoch's folder into its own, and decides by
its own: later writes and deletions of the last owner do not change it.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Final

from pipeline.checkpoint_store.manifest import CheckpointCopy
from pipeline.errors import BrokenInvariantError, EnvironmentProblem
from pipeline.ids import (
    NO_EPOCH,
    BatchId,
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NodeId,
    ParticipantId,
)
from pipeline.lanes.start.facts import (
    CheckpointFacts,
    CommittedState,
    PlannedBatch,
    Unusable,
)
from pipeline.markers.commit_marker import NO_BATCH
from pipeline.markers.positions import Positions
from pipeline.names import LaneNames
from pipeline.spark.batch.facts import positions
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.disk import full, is_full
from pipeline.spark.run.linking import (
    OFFSETS,
    Disk,
    LocalDisk,
    committed,
    link_checkpoint,
    newest,
)
from schemas.json_value import number_of, object_of

FORMAT_VERSION: Final = 2
"""Format version of a folder and of the state in it: incremented when the same plan would make
another state, or number its sources differently. A folder of another format is not read."""
TRIES: Final = 5
"""Maximum number of attempts to link a folder whose owner changes it meanwhile."""
IDENTITY: Final = "medusa.json"
FETCHED: Final = "fetched-"
"""Begin of the name of the folder that a start fetches a copy into."""
COPY: Final = "copy-"
"""Begin of the name of the folder that a node copies a checkpoint from."""
SET_ASIDE: Final = "medusa.damaged.json"
_SUSPECTED: Final = "medusa.suspected.json"
"""The last batch that Spark had committed when a query failed for an unknown cause."""
NOT_STATE: Final = frozenset({IDENTITY, SET_ASIDE, _SUSPECTED})
"""Files of a folder that are no part of its state."""
_KEPT_EPOCHS = 2
_AFTER_ALL = Epoch(99_999_999)
"""Later than every epoch: its folder's name is after all others."""
_numbers = count(1)
_NONE_READABLE = Unusable("there is no checkpoint of its last life here that can be read")


@dataclass(frozen=True, slots=True)
class Identity:
    """Owner of a folder: life, incarnation, and the Spark version that wrote it."""

    life: NetworkLife
    incarnation: Incarnation
    spark: str


@dataclass(frozen=True, slots=True)
class FollowerFolder:
    """The folder of a follower.

    Args:
        node: the follower's.
        epoch: the one that would have been claimed when it was made; a later claim may take the
            folder over, since a follower goes on while its owner restarts.
        number: another one for each follower of a node: a query that has not ended yet may still
            write into the folder of an earlier one.
    """

    node: NodeId
    epoch: Epoch
    number: int

    @classmethod
    def new(cls, node: NodeId, epoch: Epoch) -> "FollowerFolder":
        """A folder that no other follower of this process has."""
        return cls(node, epoch, next(_numbers))


class Checkpoints:
    """The checkpoint folders of one lane below a node's checkpoint root.

    Args:
        root: the node's checkpoint root.
        names: of the lane.
        life: of its network; folders of another life are not used.
        spark: the version of the engine that reads and writes them.
        disk: links files.
        follower: the folder that is used for every epoch; None: each epoch has its own. A node that
            claims may take the folder of its follower over.
    """

    def __init__(
        self,
        root: Path,
        names: LaneNames,
        life: NetworkLife,
        spark: str,
        disk: Disk | None = None,
        follower: FollowerFolder | None = None,
    ) -> None:
        self._root = root
        self._names = names
        self._life = life
        self._spark = spark
        self._disk: Disk = disk or LocalDisk()
        self._follower = follower

    def folder(self, epoch: Epoch) -> Path:
        """The checkpoint folder of an epoch."""
        own = self._follower
        folder = self._root / self._names.checkpoint(own.epoch if own else epoch)
        return folder.with_name(f"{folder.name}.{own.number}{_suffix(own.node)}") if own else folder

    def any(self, before: Epoch) -> CheckpointFacts | Unusable:
        """Whether there is a folder of an earlier epoch; only its identity is read."""
        for _, identity in self._complete(before):
            return CheckpointFacts(identity.incarnation, committed=None, planned=None)
        return Unusable("nothing has run yet")

    def adopt(
        self, epoch: Epoch, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Link an incarnation's newest folder of an earlier epoch into the folder of an epoch.

        Args:
            epoch: under which the lane starts.
            incarnation: to continue.
            lowered: the fragment.

        Returns:
            Facts of the copy, or why there is no usable checkpoint.

        Raises:
            EnvironmentProblem: the folder of the epoch cannot be written.
        """
        for _ in range(TRIES):
            found = self._of(incarnation, epoch)
            if found is None:
                return _NONE_READABLE
            source, identity = found
            with _writing(self.folder(epoch)):
                copy = self._emptied(epoch)
                whole = link_checkpoint(source, copy, frozenset({IDENTITY}), self._disk)
            if whole and _identity(source) == identity:
                return _read_facts(copy, identity, lowered, self._spark)
        return Unusable(f"the checkpoint {source.name} has changed each time while it was linked")

    def take(
        self, epoch: Epoch, source: Path, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Link a checkpoint that nobody uses any more into the folder of an epoch.

        Args:
            epoch: under which the lane starts.
            source: what a follower has left, or a copy.
            incarnation: the lane whose state it is.
            lowered: the fragment.

        Raises:
            EnvironmentProblem: the folder of the epoch cannot be written.
        """
        if self.link(epoch, source) == NO_BATCH:
            return Unusable(f"the checkpoint {source} cannot be linked")
        return self._followed(self.folder(epoch), incarnation, lowered)

    def newest_of(self, incarnation: Incarnation) -> Path | None:
        """The newest folder of an incarnation, which its owner may be using; None: there is none.

        None, too, if another version of the engine has written it.
        """
        found = self._of(incarnation, _AFTER_ALL)
        return found[0] if found and found[1].spark == self._spark else None

    def link(self, epoch: Epoch, source: Path) -> BatchId:
        """Link a checkpoint, which its owner may be using, into the folder of an epoch.

        Args:
            epoch: of the folder.
            source: the folder of the checkpoint.

        Returns:
            The last batch that is committed in it; `NO_BATCH`: there is none, or it has changed
            each time.

        Raises:
            EnvironmentProblem: the folder of the epoch cannot be written.
        """
        for _ in range(TRIES):  # Spark may remove files of old batches meanwhile
            with _writing(self.folder(epoch)):
                copy = self._emptied(epoch)
                if link_checkpoint(source, copy, NOT_STATE, self._disk):
                    return BatchId(committed(copy))
        return NO_BATCH

    def of_follower(
        self, epoch: Epoch, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Facts of the folder of an epoch with the state of a follower, or a copy.

        Args:
            epoch: of the folder.
            incarnation: the lane that is followed.
            lowered: the plan of the query.
        """
        return self._followed(self.folder(epoch), incarnation, lowered)

    def left(
        self, folder: Path, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Facts of a checkpoint that nobody uses any more, before it is taken: as of `take`."""
        return self._followed(folder, incarnation, lowered)

    def remove(self, source: Path) -> None:
        """Remove the folder of a checkpoint that was linked, or is of no use."""
        _remove(source)

    def discard(self) -> None:
        """Remove the folder of the follower, unless a lane has it."""
        folder = self.folder(NO_EPOCH)
        if self._follower is not None and not _is_lanes(folder):
            _remove(folder)

    def empty(self, epoch: Epoch) -> Path:
        """Make the empty folder of an epoch."""
        with _writing(self.folder(epoch)):
            return self._emptied(epoch)

    def complete(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """Write the identity of an epoch's folder, which makes it valid; remove old folders."""
        folder = self.folder(epoch)
        with _writing(folder):
            identity = Identity(self._life, incarnation, self._spark)
            text = json.dumps({"format": FORMAT_VERSION, **asdict(identity)})
            (folder / IDENTITY).write_text(text, encoding="utf-8")
            self._tidy(epoch)

    def set_aside(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """Invalidate the folders of an incarnation up to an epoch, which share their files.

        They are kept for analysis.
        """
        for folder, identity in self._complete(Epoch(epoch + 1)):
            if identity.incarnation == incarnation:
                with _writing(folder):
                    (folder / IDENTITY).rename(folder / SET_ASIDE)

    def suspected(self, epoch: Epoch, incarnation: Incarnation) -> bool:
        """Note that a query has failed, and perhaps by the newest folder of an incarnation.

        Every query of a lane executes a batch when it starts. The next folder has the note.

        Returns:
            Whether one has failed so before, and no batch was executed since.
        """
        found = self._of(incarnation, Epoch(epoch + 1))
        if found is None:
            return False
        folder, note = found[0], found[0] / _SUSPECTED
        text = json.dumps({"committed": committed(folder)})
        with _writing(folder):
            before = note.read_text(encoding="utf-8") if note.exists() else ""
            note.unlink(missing_ok=True)  # it is linked with that of the folder before
            note.write_text(text, encoding="utf-8")
        return before == text

    def _followed(
        self, folder: Path, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        identity = Identity(self._life, incarnation, self._spark)
        found = _read_facts(folder, identity, lowered, self._spark)
        return found if isinstance(found, Unusable) else replace(found, followed=True)

    def _tidy(self, epoch: Epoch) -> None:
        """Remove folders of earlier epochs except the newest and those that are set aside.

        One without identity may be that of a follower on another node, which uses it.
        """
        own = self.folder(epoch)
        kept = {own, *(folder for folder, _ in self._complete(epoch)[: _KEPT_EPOCHS - 1])}
        for folder in own.parent.glob("epoch-*"):
            lanes = _is_lanes(folder) and not (folder / SET_ASIDE).exists()
            if folder.name < self._limit(epoch).name and folder not in kept and lanes:
                _remove(folder)
        for folder in own.parent.glob(f"{FETCHED}epoch-*"):  # what a start has left that was killed
            if folder.name < f"{FETCHED}{self._limit(epoch).name}":
                _remove(folder)

    def _limit(self, epoch: Epoch) -> Path:
        """The name that is after those of the folders of all earlier epochs."""
        return self._root / self._names.checkpoint(epoch)

    def _emptied(self, epoch: Epoch) -> Path:
        folder = self.folder(epoch)
        if folder.exists():
            _remove(folder)
        folder.mkdir(parents=True)
        return folder

    def _of(self, incarnation: Incarnation, before: Epoch) -> tuple[Path, Identity] | None:
        return next((f for f in self._complete(before) if f[1].incarnation == incarnation), None)

    def _complete(self, before: Epoch) -> list[tuple[Path, Identity]]:
        """Earlier folders of this life that have an identity, newest first."""
        limit = self._limit(before)
        names = (path.parent for path in limit.parent.glob(f"epoch-*/{IDENTITY}"))
        folders = sorted((path for path in names if path.name < limit.name), reverse=True)
        found = ((folder, _identity(folder)) for folder in folders)
        return [(folder, one) for folder, one in found if one and one.life == self._life]


def remove_followed(root: Path, participant: ParticipantId, node: str) -> None:
    """Remove the folders that followers of a node have left, which has started again.

    Args:
        root: the node's checkpoint root; others may share it.
        participant: whose node it is: one of another may have the same name.
        node: the node.
    """
    own = root / participant
    for folder in own.glob("*/*/*/epoch-*"):
        _remove_left(folder, _suffix(node))
    for folder in own.glob(f"*/*/*/{COPY}{node}"):
        _remove(folder)


def _suffix(follower: str) -> str:
    return f"-{follower}"


def _is_lanes(folder: Path) -> bool:
    """Whether a lane uses a folder, or has used it: a follower does under another name."""
    made = folder.name.removeprefix("epoch-").isdecimal()
    return made or any((folder / name).exists() for name in (IDENTITY, SET_ASIDE))


def _remove_left(folder: Path, suffix: str) -> None:
    """Remove a folder of an epoch with a suffix, unless a lane has taken it over."""
    numbers = folder.name.removeprefix("epoch-").removesuffix(suffix).replace(".", "", 1)
    if folder.name.endswith(suffix) and numbers.isdecimal() and not _is_lanes(folder):
        _remove(folder)


def _read_facts(
    folder: Path, identity: Identity, lowered: Lowered, spark: str
) -> CheckpointFacts | Unusable:
    """Read the facts of a copied folder, or why it is unusable."""
    try:
        last, number = _last_number(folder / "commits"), _last_number(folder / OFFSETS)
        planned = None
        if number is not None:
            planned = PlannedBatch(BatchId(number), _plan(folder, number, lowered)[0])
    except (OSError, ValueError, TypeError, BrokenInvariantError) as error:
        return Unusable(f"the checkpoint {folder.name} cannot be read: {error}")
    foreign = f"Spark {identity.spark} wrote the checkpoint, this is Spark {spark}"
    return CheckpointFacts(
        incarnation=identity.incarnation,
        committed=None if last is None else BatchId(last),
        planned=planned,
        foreign="" if identity.spark == spark else foreign,
        state=None if last is None else _state(folder, last, lowered),
    )


def _state(folder: Path, batch: int, lowered: Lowered) -> CommittedState | None:
    """Where the state of a committed batch ends; None if its plan cannot be read."""
    try:
        end, watermark_ms = _plan(folder, batch, lowered)
    except (OSError, ValueError, TypeError, BrokenInvariantError):
        return None
    return CommittedState(BatchId(batch), end, watermark_ms)


def _plan(folder: Path, batch: int, lowered: Lowered) -> tuple[Positions, Millis | None]:
    """Read the end positions and the watermark of a planned batch.

    The file has a version, Spark's metadata, and a line per leaf.

    Raises:
        OSError: it cannot be read. ValueError, TypeError, BrokenInvariantError: it is incomplete.
    """
    return _ends((folder / OFFSETS / str(batch)).read_text(encoding="utf-8"), lowered)


def copied_facts(copy: CheckpointCopy, lowered: Lowered) -> CheckpointFacts | None:
    """What `Checkpoints.take` will say of a copy; None: that is not known before it is fetched."""
    if not copy.plan:
        return None
    try:
        end, watermark_ms = _ends(copy.plan, lowered)
    except (ValueError, TypeError, BrokenInvariantError):
        return None
    return CheckpointFacts(
        incarnation=copy.incarnation,
        committed=copy.batch,
        planned=PlannedBatch(copy.batch, end),
        state=CommittedState(copy.batch, end, watermark_ms),
        followed=True,
    )


def _ends(text: str, lowered: Lowered) -> tuple[Positions, Millis | None]:
    """The end positions and the watermark in the plan of a batch."""
    _version, metadata, *leaves = text.splitlines()
    watermark_ms = number_of(object_of(json.loads(metadata)).get("batchWatermarkMs"))
    end = positions([json.loads(leaf) for leaf in leaves], lowered)
    return end, Millis(watermark_ms) if watermark_ms > 0 else None


def _identity(folder: Path) -> Identity | None:
    """Read a folder's identity; None if it cannot be read, or has another format."""
    try:
        found = json.loads((folder / IDENTITY).read_text(encoding="utf-8"))
        if found["format"] != FORMAT_VERSION:
            return None
        life, incarnation = NetworkLife(found["life"]), Incarnation(found["incarnation"])
        return Identity(life, incarnation, str(found["spark"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise full(f"the checkpoint cannot be written: {error.strerror}", folder) from error
        raise EnvironmentProblem(
            f"the checkpoint cannot be written: {error.strerror}",
            place=str(folder),
            hint="make the folder writable, or point `checkpoints` at another one",
        ) from error


def _last_number(folder: Path) -> int | None:
    if not folder.is_dir():
        return None
    number = newest(tuple(path.name for path in folder.iterdir()))
    return None if number < 0 else number


def _remove(folder: Path) -> None:
    """Remove a folder, its identity first: a partly removed folder must not be linked."""
    with suppress(OSError):
        (folder / IDENTITY).unlink()
    shutil.rmtree(folder, ignore_errors=True)
