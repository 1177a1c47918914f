"""The newest copy of a lane's checkpoint, from the checkpoint store."""

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

from pipeline.checkpoint_store.manifest import CheckpointCopy, CopiedFile
from pipeline.checkpoint_store.store import CheckpointStore, digest
from pipeline.clock import Clock
from pipeline.errors import EnvironmentProblem, RetryError
from pipeline.ids import BatchId, Epoch, Incarnation, NetworkLife
from pipeline.markers.commit_marker import CommitMarker
from pipeline.names import LaneNames
from pipeline.spark.run.checkpoints import FETCHED, FORMAT_VERSION
from pipeline.spark.run.lane_settings import LaneSettings

STALLED_S: Final = 10.0
"""How long a start waits for the store to deliver anything; then it goes on without."""
_POLL_S: Final = 0.05
_numbers = count(1)


Fits = Callable[[CheckpointCopy], bool]


def _anything(_: CheckpointCopy) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which copies are of use.

    Args:
        names: of the lane.
        life: of its network.
        incarnation: of its last marker.
        epoch: of its last marker.
        spark: the version of this engine.
        fits: whether a copy is of use that all this is true of, before it is fetched.
    """

    names: LaneNames
    life: NetworkLife
    incarnation: Incarnation
    epoch: Epoch
    spark: str
    fits: Fits = _anything

    @classmethod
    def of(
        cls, settings: LaneSettings, last: CommitMarker, spark: str, fits: Fits = _anything
    ) -> "Wanted":
        """What a lane can begin from after its last marker."""
        names = settings.fragment.names.stable
        return cls(names, settings.life, last.incarnation, last.epoch, spark, fits)

    def newest(self, store: CheckpointStore) -> CheckpointCopy | None:
        """The newest copy, if it is of use.

        Raises:
            MedusaError: the store cannot be used, or the list of the copy is damaged.
        """
        found = store.newest(self.names, self.epoch)
        same = found is not None and (
            (found.life, found.incarnation) == (self.life, self.incarnation)
            and (found.state_format, found.spark) == (FORMAT_VERSION, self.spark)
        )
        return found if same and found is not None and self.fits(found) else None


def fetch(
    store: CheckpointStore,
    names: LaneNames,
    copy: CheckpointCopy,
    target: Path,
    have: Mapping[str, Path],
    check: Callable[[], None],
) -> None:
    """Write the files of a copy into a folder, which is made anew.

    Raises:
        MedusaError: it cannot be fetched; the folder is removed. Or an error of `check`.
    """
    with _made(target):
        store.fetch(names, copy, target, have, check)


class StalledError(RetryError):
    """The store has delivered nothing for a while."""

    code = "store-stalled"


def fetch_at_once(
    store: CheckpointStore,
    wanted: Wanted,
    here: BatchId,
    beside: Path,
    clock: Clock,
    stop: threading.Event,
) -> tuple[CheckpointCopy, Path] | None:
    """Fetch the newest copy for a start, which waits for it; None: none is of use, or it stops.

    A folder that is mounted may hang in the kernel, so the fetch has a thread of its own, and a
    folder that is used only once it is complete.

    Args:
        store: where from.
        wanted: which copies are of use.
        here: the last batch of the state that this node has; only a later one is of use.
        beside: the folder beside which that of the copy is made; what it has of the copy is not
            fetched.
        clock: of the wait.
        stop: ends it.

    Raises:
        StalledError: nothing was delivered for `STALLED_S`.
        MedusaError: the store cannot be used, or the copy is damaged.
    """
    target = beside.with_name(f"{FETCHED}{beside.name}.{next(_numbers)}")
    over, seen, seen_s = threading.Event(), (-1, -1), clock.monotonic_s()
    had = dict[str, Path]()

    def check() -> None:
        if over.is_set():
            raise StalledError("the start does not wait for the checkpoint store any more")

    def work() -> CheckpointCopy | None:
        copy = wanted.newest(store)
        if copy is None or copy.batch <= here:
            return None
        for one in copy.files:
            check()
            had.update(_had(beside, one))
        fetch(store, wanted.names, copy, target, had, check)
        return copy

    outcome: Future[CheckpointCopy | None] = Future()
    name = f"fetch {wanted.names.lane.fragment}"
    threading.Thread(target=_run, args=(outcome, work), name=name, daemon=True).start()
    while not wait((outcome,), _POLL_S).done:
        if (found := (_size(target), len(had))) != seen:
            seen, seen_s = found, clock.monotonic_s()
        if stop.is_set() or clock.monotonic_s() - seen_s > STALLED_S:
            over.set()
            if stop.is_set():
                return None
            raise StalledError(
                f"it has delivered nothing for {STALLED_S:g} s",
                place=f"store.url {store.place}",
                hint="the start goes on without it",
            )
    copy = outcome.result()
    return None if copy is None else (copy, target)


def _had(folder: Path, one: CopiedFile) -> dict[str, Path]:
    """The file of an older checkpoint with the content of a file of a copy, by its digest."""
    path = folder / one.path
    try:
        same = path.stat().st_size == one.size and digest(path) == one.sha256
    except OSError:
        return {}
    return {one.sha256: path} if same else {}


def _size(folder: Path) -> int:
    """Of all files in a folder, which another thread fills or removes, in bytes."""
    try:
        return sum(path.stat().st_size for path in folder.rglob("*"))
    except OSError:
        return 0


def _run(
    outcome: "Future[CheckpointCopy | None]", work: Callable[[], CheckpointCopy | None]
) -> None:
    try:
        outcome.set_result(work())
    except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
        outcome.set_exception(error)


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make an empty folder; remove it if it is not filled."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        yield
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise EnvironmentProblem(
            f"the copy of a checkpoint cannot be written: {error.strerror or error}",
            place=str(folder),
            hint="make the folder writable and see that it has room",
        ) from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
