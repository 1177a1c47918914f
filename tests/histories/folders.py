"""In-memory checkpoint folders; replaces `pipeline/spark/run/checkpoints.py`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pipeline.errors import BrokenInvariantError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, NetworkLife
from pipeline.lanes.start.facts import (
    CheckpointFacts,
    CommittedState,
    PlannedBatch,
    Unusable,
)
from pipeline.markers.commit_marker import NO_BATCH
from pipeline.names import LaneNames
from pipeline.spark.batch.facts import positions
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.run.checkpoints import FollowerFolder
from tests.histories.turns import pause

KEPT_EPOCHS = 2
Leaves = list[dict[str, dict[str, int]]]
"""Topic, partition, offset, for each leaf of the query, as Spark stores them."""


@dataclass
class Planned:
    """A line of `offsets`: the ends of a batch, and its watermark."""

    leaves: Leaves
    watermark: int


@dataclass
class Folder:
    """One folder; `states` contains the state after each batch."""

    name: str
    life: NetworkLife
    incarnation: Incarnation | None = None
    offsets: dict[int, Planned] = field(default_factory=dict)
    commits: set[int] = field(default_factory=set)
    states: dict[int, Any] = field(default_factory=dict)

    def clear(self) -> None:
        """Remove everything in it."""
        self.incarnation = None
        self.offsets, self.commits, self.states = {}, set(), {}

    def set_back(self, batches: int, *, damage: bool) -> None:
        """Lose the last committed batches, as with the unwritten data of a machine that stops.

        `damage`: lose the state of the batch before them, too.
        """
        for batch in sorted(self.commits, reverse=True)[:batches]:
            self.commits.discard(batch)
        last = max(self.commits, default=-1)
        if damage:
            self.states.pop(last, None)
        self.offsets = {batch: plan for batch, plan in self.offsets.items() if batch <= last + 1}


Root = dict[str, dict[int, Folder]]
"""All folders below a node's root: by lane, then by epoch."""


class Checkpoints:
    """Replaces the class of the same name.

    The folder of a follower is one of its lane's once a lane that has taken it over completes it.
    """

    def __init__(
        self,
        root: Root,
        names: LaneNames,
        life: NetworkLife,
        _spark: str,
        follower: FollowerFolder | None = None,
    ) -> None:
        self._folders = root.setdefault(str(names.lane), {})
        self._life = life
        self._own: Folder | None = None
        if follower is not None:
            self._own = Folder(f"epoch-{follower.epoch}-{follower.node}", life)

    def folder(self, epoch: Epoch) -> Folder | str:
        """The folder of an epoch; a message if there is none."""
        if self._own is not None:
            return self._own
        return self._folders.get(epoch, f"epoch-{epoch}")

    def any(self, before: Epoch) -> CheckpointFacts | Unusable:
        """Whether there is a folder of an earlier epoch."""
        for folder in self._complete(before):
            assert folder.incarnation is not None
            return CheckpointFacts(folder.incarnation, committed=None, planned=None)
        return Unusable("nothing has run yet")

    def adopt(
        self, epoch: Epoch, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Copy the existing checkpoint into the folder of an epoch; returns its facts."""
        pause()
        found = (f for f in self._complete(epoch) if f.incarnation == incarnation)
        source = next(found, None)
        if source is None:
            return Unusable("there is no checkpoint of its last life here that can be read")
        return self._copied(epoch, source, incarnation, lowered)

    def take(
        self, epoch: Epoch, source: Folder, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Copy the checkpoint of a follower into the folder of an epoch; returns its facts."""
        return _followed(self._copied(epoch, source, incarnation, lowered))

    def newest_of(self, incarnation: Incarnation) -> Folder | None:
        """The newest folder of an incarnation."""
        found = self._complete(Epoch(1 << 30))
        return next((one for one in found if one.incarnation == incarnation), None)

    def link(self, epoch: Epoch, source: Folder) -> BatchId:
        """Copy a checkpoint that its owner may be using; returns its last committed batch."""
        if not source.commits:
            return NO_BATCH
        return BatchId(max(self._copy(epoch, source).commits))

    def of_follower(
        self, _epoch: Epoch, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Facts of the folder that the query of a follower uses."""
        assert self._own is not None
        return _followed(_read_facts(self._own, incarnation, lowered))

    def left(
        self, folder: Folder, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        """Facts of what a follower has left, before it is taken."""
        return _followed(_read_facts(folder, incarnation, lowered))

    def remove(self, source: Folder) -> None:
        """Remove what an earlier follower has left."""
        source.clear()

    def discard(self) -> None:
        """Remove what a follower has left, unless a lane has it."""
        if self._own is not None and not any(self._own is f for f in self._folders.values()):
            self._own.clear()

    def empty(self, epoch: Epoch) -> Folder:
        """Create an empty folder; that of a follower is emptied."""
        pause()
        if self._own is not None:
            self._own.clear()
            return self._own
        self._folders[epoch] = Folder(f"epoch-{epoch}", self._life)
        return self._folders[epoch]

    def complete(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """Mark the folder as complete."""
        if self._own is not None:
            self._folders[epoch] = self._own
        self._folders[epoch].incarnation = incarnation
        kept = self._complete(epoch)[: KEPT_EPOCHS - 1]
        for old in [e for e, f in self._folders.items() if e < epoch and f not in kept]:
            del self._folders[old]

    def set_aside(self, epoch: Epoch, incarnation: Incarnation) -> None:
        """Remove the folders of an incarnation up to an epoch."""
        for folder in self._complete(Epoch(epoch + 1)):
            if folder.incarnation == incarnation:
                folder.incarnation = None

    def _copied(
        self, epoch: Epoch, source: Folder, incarnation: Incarnation, lowered: Lowered
    ) -> CheckpointFacts | Unusable:
        return _read_facts(self._copy(epoch, source), incarnation, lowered)

    def _copy(self, epoch: Epoch, source: Folder) -> Folder:
        copy = self.empty(epoch)
        copy.offsets, copy.commits = dict(source.offsets), set(source.commits)
        copy.states = dict(source.states)
        return copy

    def _complete(self, before: Epoch) -> list[Folder]:
        found = (self._folders[e] for e in sorted(self._folders, reverse=True) if e < before)
        return [one for one in found if one.incarnation and one.life == self._life]


def _read_facts(
    folder: Folder, incarnation: Incarnation, lowered: Lowered
) -> CheckpointFacts | Unusable:
    """The facts of a folder."""
    planned = None
    if folder.offsets:
        number = max(folder.offsets)
        leaves = folder.offsets[number].leaves
        if len(leaves) != len(lowered.paths):
            return Unusable(f"the checkpoint {folder.name} cannot be read: it is not whole")
        try:
            planned = PlannedBatch(BatchId(number), positions(leaves, lowered))
        except BrokenInvariantError as error:
            return Unusable(f"the checkpoint {folder.name} cannot be read: {error}")
    committed = max(folder.commits) if folder.commits else None
    return CheckpointFacts(
        incarnation=incarnation,
        committed=None if committed is None else BatchId(committed),
        planned=planned,
        state=None if committed is None else _state(folder, committed, lowered),
    )


def _followed(facts: CheckpointFacts | Unusable) -> CheckpointFacts | Unusable:
    """The facts of a checkpoint that a follower has made."""
    return facts if isinstance(facts, Unusable) else replace(facts, followed=True)


def _state(folder: Folder, batch: int, lowered: Lowered) -> CommittedState:
    plan = folder.offsets[batch]
    end, watermark_ms = positions(plan.leaves, lowered), Millis(plan.watermark)
    return CommittedState(BatchId(batch), end, watermark_ms or None)


def leaves_of(ends: Mapping[str, Mapping[str, Mapping[int, int]]], lowered: Lowered) -> Leaves:
    """Ends by source, topic and partition as lines for the leaves of a query."""
    return [
        {
            topic: {str(partition): end for partition, end in offsets.items()}
            for topic, offsets in ends[source].items()
        }
        for source in lowered.leaves
    ]
