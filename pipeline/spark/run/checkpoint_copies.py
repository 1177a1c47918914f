"""Copies of the checkpoints of running lanes into the checkpoint store: passive standby.

A copy is made beside the lane, which neither waits for it nor fails with it: the files of its
folder are linked (`linking.py`), and those that the store lacks are sent. Source: Hwang et al.,
ICDE 2005, passive standby; the checkpoints are those of the engine, and the log has everything
since.
"""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pipeline.checkpoint_store.manifest import CheckpointCopy, CopiedFile
from pipeline.checkpoint_store.store import CheckpointStore, digest
from pipeline.clock import Clock
from pipeline.errors import EnvironmentProblem, RetryError
from pipeline.ids import BatchId, Epoch, FragmentId, Incarnation, NetworkId, NetworkLife
from pipeline.names import LaneNames
from pipeline.spark.run.checkpoints import COPY, FORMAT_VERSION, NOT_STATE, TRIES
from pipeline.spark.run.linking import OFFSETS, LocalDisk, committed, link_checkpoint

KEPT_S: Final = 300.0
"""How long an object stays in the store although no copy consists of it any more: others may be
fetching an earlier copy."""
NEEDED: Final = 2
"""How many of the newest entries of Spark's logs a query needs that continues a checkpoint."""
_LOGS: Final = ("commits", OFFSETS)
_Key = tuple[str, int, int, int]
"""Path, inode, size and time of a file: as long as they are the same, so is its content."""


@dataclass(frozen=True, slots=True)
class RunningCheckpoint:
    """The checkpoint folder of a lane that runs.

    Args:
        names: of the lane.
        life: of its network.
        epoch: of its ownership.
        incarnation: of the lane.
        folder: that its query writes into.
        spark: the version of the engine.
    """

    names: LaneNames
    life: NetworkLife
    epoch: Epoch
    incarnation: Incarnation
    folder: Path
    spark: str


@dataclass(slots=True)
class _Progress:
    """What has been copied of a running checkpoint.

    Args:
        of: the checkpoint.
        begun: its last batch when the lane began: what is written later proves that the state can
            be read.
    """

    of: RunningCheckpoint
    begun: int
    last: CheckpointCopy | None = None
    tried_s: float | None = None
    there: set[str] = field(default_factory=set)
    """The objects in its folder of the store."""
    useless_s: dict[str, float] = field(default_factory=dict)
    """Since when no copy consists of an object."""
    is_tidy: bool = False
    digests: dict[_Key, str] = field(default_factory=dict)


class _EndedError(RetryError):
    """What is copied is not wanted any more."""


class CheckpointCopies:
    """Copies the checkpoints of the lanes that run on a node, one after the other.

    Lanes call `begin` and `end`, from any thread; one other thread calls `copy`.

    Args:
        store: where to.
        clock: of the time in a copy.
        node: its name: nodes may share the folder of checkpoints.
        is_deployed: whether a network has this life, by the catalog.
    """

    def __init__(
        self,
        store: CheckpointStore,
        clock: Clock,
        node: str,
        is_deployed: Callable[[NetworkId, NetworkLife], bool],
    ) -> None:
        self.store = store
        self._clock = clock
        self._node = node
        self._is_deployed = is_deployed
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._running: dict[FragmentId, _Progress] = {}

    def begin(self, running: RunningCheckpoint) -> None:
        """A lane runs from now on in this folder."""
        progress = _Progress(running, committed(running.folder))
        with self._lock:
            self._running[running.names.lane.fragment] = progress

    def end(self, names: LaneNames, epoch: Epoch) -> None:
        """The lane of an epoch has ended."""
        with self._lock:
            found = self._running.get(names.lane.fragment)
            if found is not None and found.of.epoch == epoch:
                del self._running[names.lane.fragment]

    def discard(self, running: RunningCheckpoint) -> None:
        """The state of a lane cannot be read: neither can the copies of its incarnation.

        Raises:
            MedusaError: the store cannot be used.
        """
        self.end(running.names, running.epoch)
        self.store.discard(running.names, running.epoch, running.incarnation)

    def close(self) -> None:
        """Begin no copy any more, and no further file of one."""
        self._closed.set()

    def copy(self, fragment: FragmentId, every_ms: int) -> CheckpointCopy | None:
        """Copy the checkpoint of a fragment, if that is due; None: it is not, or has not changed.

        The first copy is due when the lane has written a batch.

        Raises:
            MedusaError: it cannot be copied now; the last copy stays.
        """
        with self._lock:
            progress = self._running.get(fragment)
        now_s = self._clock.monotonic_s()
        if progress is None or self._closed.is_set():
            return None
        if progress.tried_s is not None and now_s - progress.tried_s < every_ms / 1_000:
            return None
        if committed(progress.of.folder) <= progress.begun:
            return None
        progress.tried_s = now_s
        folder = progress.of.folder.parent / f"{COPY}{self._node}"
        try:
            with _staged(folder):
                copy = self._linked(progress, folder)
                if copy is not None:
                    self._put(progress, copy, folder)
        except _EndedError:
            return None
        finally:
            self._remove_if_destroyed(progress)
        return copy

    def _linked(self, progress: _Progress, folder: Path) -> CheckpointCopy | None:
        """The files of the checkpoint, linked into a folder; None: it has not changed."""
        of, last = progress.of, progress.last
        batch = committed(of.folder)
        if batch < 0 or (last is not None and last.batch == batch):
            return None
        for _ in range(TRIES):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if link_checkpoint(of.folder, folder, NOT_STATE, LocalDisk()):
                break
        else:
            raise RetryError(f"the checkpoint {of.folder} has changed each time it was linked")
        batch = committed(folder)
        if batch < 0:  # it was removed meanwhile
            return None
        return CheckpointCopy(
            life=of.life,
            incarnation=of.incarnation,
            epoch=of.epoch,
            batch=BatchId(batch),
            written_at_ms=self._clock.now_ms(),
            state_format=FORMAT_VERSION,
            spark=of.spark,
            files=tuple(self._files(progress, folder, batch)),
            plan=(folder / OFFSETS / str(batch)).read_text(encoding="utf-8"),
        )

    def _files(self, progress: _Progress, folder: Path, batch: int) -> list[CopiedFile]:
        found, digests, of_lane = [], dict[_Key, str](), progress.of.folder
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            name = path.relative_to(folder).as_posix()
            if not _is_needed(name, batch):
                continue
            status = path.stat()
            key = (name, status.st_ino, status.st_size, status.st_mtime_ns)
            digests[key] = progress.digests.get(key) or digest(path)
            if path.stat().st_mtime_ns != status.st_mtime_ns:  # Spark is still writing it
                raise RetryError(f"{name} has changed while it was read", place=str(of_lane))
            found.append(CopiedFile(name, digests[key], status.st_size))
        progress.digests = digests
        return found

    def _put(self, progress: _Progress, copy: CheckpointCopy, folder: Path) -> None:
        """Write a copy; remove what no copy has consisted of for a while."""
        names, last = progress.of.names, progress.last
        sources = {one.path: folder / one.path for one in copy.files}
        check = partial(self._check, progress)
        if not progress.is_tidy and not progress.there:
            with suppress(RetryError):  # the earlier list is damaged: everything is sent
                self.store.reuse(names, copy, progress.there, check)
            check()
        self.store.put(names, copy, sources, progress.there, check)
        progress.last = copy
        if not progress.is_tidy:
            self.store.tidy(copy, names)
            progress.is_tidy = True
        used = copy.objects if last is None else copy.objects | last.objects
        now_s, since_s = self._clock.monotonic_s(), progress.useless_s
        progress.useless_s = {one: since_s.get(one, now_s) for one in progress.there - used}
        old = {one for one, at_s in progress.useless_s.items() if now_s - at_s > KEPT_S}
        self.store.remove(names, copy.epoch, old)
        progress.there -= old

    def _check(self, progress: _Progress) -> None:
        """Check that the lane still runs whose checkpoint is copied, and that its state is read."""
        if self._closed.is_set() or not self._runs(progress):
            raise _EndedError("its lane has ended, or the node stops")

    def _runs(self, progress: _Progress) -> bool:
        with self._lock:
            return self._running.get(progress.of.names.lane.fragment) is progress

    def _remove_if_destroyed(self, progress: _Progress) -> None:
        """Remove what was written while the network was being destroyed.

        That waits for the lane, which has ended meanwhile, and not for its copy. It removes the
        network from the catalog before its copies: what it does not find is removed here.
        """
        of = progress.of
        if self._runs(progress) or self._is_deployed(of.names.lane.fragment.network, of.life):
            return
        self.store.remove_epoch(of.names, of.epoch)


def _is_needed(name: str, batch: int) -> bool:
    """Whether a query that continues after a batch needs a file of the checkpoint."""
    folder, _, number = name.rpartition("/")
    if folder not in _LOGS or not number.isdecimal():
        return True
    return batch - NEEDED < int(number) <= batch


@contextmanager
def _staged(folder: Path) -> Iterator[None]:
    """Translate errors of the disk; remove the folder afterwards."""
    try:
        yield
    except OSError as error:
        raise EnvironmentProblem(
            f"the checkpoint cannot be copied: {error.strerror or error}", place=str(folder)
        ) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
