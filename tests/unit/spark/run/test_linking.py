"""Copies of checkpoint folders that their owners still write into.

The owner is a model of Spark and of a lane's sink: every step is one operation of the file system,
or the commit of a marker. Between any two operations of the copy it may go on.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.batch import BatchFacts, is_repeat
from pipeline.lanes.start.decision import BeginAt, Continue, Rebuild, decide_start
from pipeline.lanes.start.facts import CheckpointFacts, PlannedBatch, StartRequest
from pipeline.lanes.start.markers import first_marker
from pipeline.markers.commit_marker import CommitMarker, Judged
from pipeline.markers.positions import InputPartition
from pipeline.spark.run.linking import (
    PROGRESS_MAX,
    Entries,
    LocalDisk,
    link_checkpoint,
)
from pipeline.spark.session.session import BATCHES_RETAINED

CARS = InputPartition(StreamName("cars"), TopicName("sightings"), 0)
ONE = Incarnation("one")
WANTED = StartRequest(Epoch(1), "digest", stateful=True, on_change=None, place="")
SOURCE, COPY = Path("source"), Path("copy")
STORE = Path("state/0/0")
SNAPSHOT_EVERY = 4


class MemoryDisk:
    """Files without content; a visible file is complete, as Spark renames it when it is."""

    def __init__(self) -> None:
        self.files: dict[Path, set[str]] = {}

    def write(self, path: Path) -> None:
        """Make a file visible."""
        self.files.setdefault(path.parent, set()).add(path.name)

    def delete(self, path: Path) -> None:
        """Remove a file, if it exists."""
        self.files.get(path.parent, set()).discard(path.name)

    def entries(self, folder: Path) -> Entries:
        """See `Disk`."""
        at, depth = folder.parts, len(folder.parts)
        paths = [path.parts for path in self.files]
        below = {path[depth] for path in paths if path[:depth] == at and len(path) > depth}
        return Entries(tuple(sorted(self.files.get(folder, ()))), tuple(sorted(below)))

    def link(self, source: Path, target: Path) -> None:
        """See `Disk`."""
        if source.name not in self.files.get(source.parent, ()):
            raise FileNotFoundError(source)
        self.write(target)

    def numbers(self, folder: Path, kind: str = "") -> list[int]:
        """The numbers by which files of a kind are named, in order."""
        names = self.files.get(folder, ())
        return sorted(int(found[1]) for n in names if (found := re.fullmatch(rf"(\d+){kind}", n)))


@dataclass
class Owner:
    """A lane that writes its checkpoint, batch by batch, and deletes what is old.

    Args:
        disk: where its checkpoint is.
        beside: whether Spark counts a batch as done before its marker is committed, as in a lane
            without state; else a lane that is fenced ends in the batch that it cannot write.
        marker: the batch of the last commit marker.
    """

    disk: MemoryDisk
    beside: bool
    marker: int = -1
    fenced: bool = False
    batch: int = 0
    _steps: Iterator[None] = field(init=False)

    def __post_init__(self) -> None:
        self._steps = self._run()

    def step(self, count: int = 1) -> None:
        """Execute the next operations; after its end none."""
        for _ in range(count):
            next(self._steps, None)

    def finish(self, batches: int) -> None:
        """Continue until this many batches are done."""
        while self.batch < batches:
            self.step()

    def _run(self) -> Iterator[None]:
        while True:
            yield from self._execute()
            if self.fenced and not self.beside:
                return
            if not self.beside:
                self.marker = self.batch
                yield
            self.disk.write(SOURCE / "commits" / str(self.batch))
            yield
            if self.beside and not self.fenced:
                self.marker = self.batch
                yield
            yield from self._maintain()
            self.batch += 1

    def _execute(self) -> Iterator[None]:
        self.disk.write(SOURCE / "offsets" / str(self.batch))
        yield
        for store in ("0", "1"):
            self.disk.write(SOURCE / "state/0" / store / f"{self.batch + 1}.changelog")
            yield

    def _maintain(self) -> Iterator[None]:
        """Write a snapshot of the state, delete old files of log and state."""
        version, store = self.batch + 1, SOURCE / STORE
        if version % SNAPSHOT_EVERY == 0:
            for path in (store / "SSTs" / f"{version}.sst", store / f"{version}.zip"):
                self.disk.write(path)
                yield
            yield from self._delete_old_state(version)
        for log in ("offsets", "commits"):
            self.disk.delete(SOURCE / log / str(self.batch - BATCHES_RETAINED))
            yield

    def _delete_old_state(self, version: int) -> Iterator[None]:
        """As `RocksDBFileManager.deleteOldVersions`: the oldest snapshot that is needed stays."""
        store = SOURCE / STORE
        snapshots = self.disk.numbers(store, ".zip")
        kept = max((n for n in snapshots if n <= version - BATCHES_RETAINED + 1), default=0)
        for number in snapshots:
            if number < kept:
                self.disk.delete(store / "SSTs" / f"{number}.sst")
                yield
        for kind in (".zip", ".changelog"):
            for number in self.disk.numbers(store, kind):
                if number < kept:
                    self.disk.delete(store / f"{number}{kind}")
                    yield


class Interleaved(MemoryDisk):
    """The disk of an owner who executes some operations before each one of the copy."""

    def __init__(self, owner: Owner, steps: Iterator[int]) -> None:
        super().__init__()
        self.files = owner.disk.files
        self.owner = owner
        self.steps = steps

    def entries(self, folder: Path) -> Entries:
        """After the owner's next operations."""
        self.owner.step(next(self.steps, 0))
        return super().entries(folder)

    def link(self, source: Path, target: Path) -> None:
        """After the owner's next operations."""
        self.owner.step(next(self.steps, 0))
        super().link(source, target)


def ends(batch: int) -> dict[InputPartition, Offset]:
    """The end of a batch: ten records each."""
    return {CARS: Offset((batch + 1) * 10)}


def executed(batch: int) -> BatchFacts:
    """The facts of a batch from the engine."""
    return BatchFacts(BatchId(batch), ends(batch), None, None, 10, 0, (), 0, {})


def last_of(disk: MemoryDisk, log: str) -> int:
    """The newest number in a log of the copy; -1 if there is none."""
    return max(disk.numbers(COPY / log), default=-1)


def check_copy(disk: MemoryDisk) -> None:
    """All files that Spark reads exist, and no batch is planned that must not be executed."""
    last, planned = last_of(disk, "commits"), last_of(disk, "offsets")
    assert planned in (last, last + 1)
    assert set(range(max(0, last), planned + 1)) <= set(disk.numbers(COPY / "offsets"))
    version, store = last + 1, COPY / STORE
    base = max((n for n in disk.numbers(store, ".zip") if n <= version), default=0)
    assert base == 0 or base in disk.numbers(store / "SSTs", ".sst")
    assert set(range(base + 1, version + 1)) <= set(disk.numbers(store, ".changelog"))


def facts(disk: MemoryDisk) -> CheckpointFacts:
    """The contents of a copy, as `Checkpoints.adopt` reads it."""
    last, planned = last_of(disk, "commits"), last_of(disk, "offsets")
    return CheckpointFacts(
        incarnation=ONE,
        committed=None if last < 0 else BatchId(last),
        planned=None if planned < 0 else PlannedBatch(BatchId(planned), ends(planned)),
    )


def last_marker(batch: int) -> CommitMarker:
    """The last commit marker of the owner."""
    first = first_marker(WANTED, ONE, ends(-1), Millis(0))
    judged = None if batch < 0 else Judged(1, 0, late=False, refused=0, failed=0)
    return replace(
        first, batch=BatchId(batch), end=ends(batch), boundary_ms=Millis(0), judged=judged
    )


OWNERS = st.tuples(st.booleans(), st.integers(0, 45), st.integers(0, 11))
"""Whether it writes beside its query, its finished batches, and operations in the next one."""
STEPS = st.lists(st.integers(0, 3) | st.integers(0, 60), max_size=150)
"""How many operations the owner does before each operation of the copy."""


def check(owner: Owner, batches: int, further: int, steps: list[int]) -> int:
    """Copy a folder of an owner that goes on between any two operations of the copy.

    The copy is consistent, and the batch that is written next is the one after the last marker.

    Returns:
        How many operations the copy took.
    """
    owner.finish(batches)
    owner.step(further)
    owner.fenced, marker, left = True, last_marker(owner.marker), iter(steps)
    whole = link_checkpoint(SOURCE, COPY, frozenset(), Interleaved(owner, left))
    operations = len(steps) - len(list(left))
    if not whole:
        assert any(steps)
        return operations
    assert last_marker(owner.marker) == marker
    check_copy(owner.disk)
    request = replace(WANTED, epoch=Epoch(2), stateful=not owner.beside)
    start = decide_start(marker, facts(owner.disk), request)
    if isinstance(start, BeginAt | Rebuild):
        assert start.marker.end == marker.end
        assert owner.beside
        return operations
    assert isinstance(start, Continue)
    batch = last_of(owner.disk, "commits") + 1
    assert start.planned in (None, batch)
    assert (marker.batch == batch) == is_repeat(marker, executed(batch))
    assert marker.batch in (batch - 1, batch)
    return operations


@given(OWNERS, STEPS)
def test_a_copy_is_consistent_for_any_operations_of_its_owner(
    owner: tuple[bool, int, int], steps: list[int]
) -> None:
    """At any time, any number of operations."""
    beside, batches, further = owner
    check(Owner(MemoryDisk(), beside), batches, further, steps)


@pytest.mark.parametrize("owner", ["without state", "with state"])
def test_a_copy_is_consistent_for_any_interruption_by_its_owner(owner: str) -> None:
    """Once, at every point of both, by a few operations or by several batches."""
    beside = owner == "without state"
    operations = check(Owner(MemoryDisk(), beside), 3, 0, [0] * 100)
    for further in range(14):
        for moment in range(operations + 1):
            for count in (1, 2, 4, 40):
                check(Owner(MemoryDisk(), beside), 3, further, [0] * moment + [count])


def test_an_unchanging_folder_is_linked_completely(tmp_path: Path) -> None:
    """Every file but temporary and excluded ones, by links: no content is copied."""
    source, copy = tmp_path / "source", tmp_path / "copy"
    files = ("commits/0", "offsets/0", "offsets/1", "metadata", "sources/0/0", "state/0/0/1.zip")
    for file in (*files, "medusa.json", "state/0/0/.2.zip.5.tmp", "state/0/0/.1.zip.crc"):
        (source / file).parent.mkdir(parents=True, exist_ok=True)
        (source / file).write_text(file)
    assert link_checkpoint(source, copy, frozenset({"medusa.json"}), LocalDisk())
    found = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert found == set(files)
    assert all((copy / file).samefile(source / file) for file in files)


class Far(MemoryDisk):
    """Its owner finishes some batches at once, when the commits are linked."""

    owner: Owner
    batches: int

    def entries(self, folder: Path) -> Entries:
        """See `Disk`."""
        if folder == SOURCE / "offsets":
            self.owner.finish(self.owner.batch + self.batches)
        return super().entries(folder)


@pytest.mark.parametrize(
    ("batches", "whole"),
    [(PROGRESS_MAX, True), (PROGRESS_MAX + 1, False), (3 * BATCHES_RETAINED, False)],
)
def test_a_copy_with_too_many_concurrent_batches_is_not_used(batches: int, whole: bool) -> None:  # noqa: FBT001
    """Files that it needs may be deleted before they are listed, so their absence is undetected."""
    disk = Far()
    disk.owner, disk.batches = Owner(disk, beside=True), batches
    disk.owner.finish(30)
    assert link_checkpoint(SOURCE, COPY, frozenset(), disk) is whole
    if whole:
        check_copy(disk)


@pytest.mark.parametrize("folder", ["commits", "offsets", "state/0/0"])
def test_a_file_that_vanishes_causes_another_attempt(folder: str) -> None:
    """It was listed, and deleted before it was linked."""

    class Vanishing(MemoryDisk):
        def link(self, source: Path, target: Path) -> None:
            if source.parent == SOURCE / folder:
                self.delete(source)
            super().link(source, target)

    disk = Vanishing()
    Owner(disk, beside=False).finish(5)
    assert not link_checkpoint(SOURCE, COPY, frozenset(), disk)


def test_a_missing_file_is_not_copied_instead(tmp_path: Path) -> None:
    """A copy is for file systems without links."""
    with pytest.raises(FileNotFoundError):
        LocalDisk().link(tmp_path / "gone", tmp_path / "new")
