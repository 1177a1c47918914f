"""How a lane starts: from what the last marker and the checkpoint say, and nothing else.

A batch goes through four steps: Spark plans it (its end offsets go into the checkpoint), executes
it, the sink commits its transaction (marker included), Spark commits it in the checkpoint. So with
the lane's own untouched checkpoint the last marker is about the checkpoint's last committed batch,
or about the one after it, which is then planned with exactly the marker's ends. Everything else
means that marker or checkpoint is not what this lane left behind, and is refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pipeline.errors import FencedError, RefusedError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis
from pipeline.lanes.markers import NO_BATCH, CommitMarker, Totals
from pipeline.lanes.positions import InputPartition, Positions


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The newest batch whose end positions are in the checkpoint, committed there or not."""

    batch: BatchId
    end: Positions


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """What a checkpoint folder says.

    Args:
        incarnation: the life of the lane that it belongs to; None if it does not say.
        committed: the last batch that Spark committed in it; None if there is none.
        planned: the newest planned batch; None if there is none.
    """

    incarnation: Incarnation | None
    committed: BatchId | None
    planned: PlannedBatch | None

    @property
    def empty(self) -> bool:
        """Whether no batch was ever planned in it."""
        return self.committed is None and self.planned is None


@dataclass(frozen=True, slots=True)
class FirstStart:
    """The lane never ran: choose an incarnation and start positions, write the first marker."""


@dataclass(frozen=True, slots=True)
class BeginAt:
    """No batch ran yet: make a new checkpoint that begins at `marker.end`.

    The incarnation stays the marker's: no state was made under it, and advances that it may have
    been sent were right for these same positions.
    """

    marker: CommitMarker


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on with the checkpoint as it is.

    `executed_only`: the batch that has to run for its state but whose output the marker has
    already; None if there is no such batch.
    """

    marker: CommitMarker
    executed_only: BatchId | None


Start = FirstStart | BeginAt | Continue


def decide_start(
    marker: CommitMarker | None, checkpoint: CheckpointFacts | None, epoch: Epoch, place: str
) -> Start:
    """Decide how a lane starts.

    Args:
        marker: the fragment's last commit marker; None if there is none.
        checkpoint: what the checkpoint folder says; None if there is no folder.
        epoch: the ownership under which the lane is to start.
        place: names fragment and checkpoint, for the error.

    Raises:
        FencedError: the marker's epoch is newer than ours.
        RefusedError: starting would lose, repeat or change output.
    """
    if marker is not None and marker.epoch > epoch:
        raise FencedError(
            f"epoch {marker.epoch} wrote the last commit marker, this lane has epoch {epoch}",
            place=place,
        )
    if checkpoint is None or checkpoint.empty:
        return _without_checkpoint(marker, checkpoint, place)
    if marker is None:
        raise RefusedError(
            "there is a checkpoint, but no commit marker says what it has written",
            place=place,
            hint="if the fragment's topics were deleted on purpose, remove the checkpoint folder "
            "as well; otherwise the topics are lost or this is another Kafka cluster",
        )
    return _with_checkpoint(marker, checkpoint, place)


def first_marker(
    epoch: Epoch, incarnation: Incarnation, positions: Positions, written_at_ms: Millis
) -> CommitMarker:
    """The marker of a lane's first start: positions are settled, nothing has run."""
    return CommitMarker(
        epoch=epoch,
        incarnation=incarnation,
        batch=NO_BATCH,
        start=positions,
        end=positions,
        needed=positions,
        late_ms=None,
        eviction_ms=None,
        progress={},
        late_settled=NO_BATCH,
        boundary_ms=None,
        totals=Totals(),
        written_at_ms=written_at_ms,
    )


def adopted(marker: CommitMarker, epoch: Epoch, written_at_ms: Millis) -> CommitMarker:
    """A copy of the last marker under an own epoch, which a new owner commits before it starts."""
    return replace(marker, epoch=epoch, written_at_ms=written_at_ms)


def _without_checkpoint(
    marker: CommitMarker | None, checkpoint: CheckpointFacts | None, place: str
) -> Start:
    if marker is None:
        return FirstStart()
    if marker.batch == NO_BATCH:
        return BeginAt(marker)
    state = "missing" if checkpoint is None else "empty"
    raise RefusedError(
        f"the checkpoint is {state}, but batch {marker.batch} is written already",
        place=place,
        hint="put the checkpoint folder back, or destroy the network and deploy it again to start "
        "over; a rebuild from the input topics is not possible yet",
    )


def _with_checkpoint(marker: CommitMarker, checkpoint: CheckpointFacts, place: str) -> Start:
    if checkpoint.incarnation != marker.incarnation:
        raise RefusedError(
            f"the checkpoint belongs to incarnation {checkpoint.incarnation or 'unknown'}, "
            f"the last commit marker to {marker.incarnation}",
            place=place,
            hint="put the checkpoint folder of that incarnation back",
        )
    committed = NO_BATCH if checkpoint.committed is None else checkpoint.committed
    planned = committed if checkpoint.planned is None else checkpoint.planned.batch
    if planned not in (committed, committed + 1):
        raise RefusedError(
            f"the checkpoint is damaged: batch {committed} is committed, {planned} is planned",
            place=place,
            hint="put an intact copy of the checkpoint folder back",
        )
    if committed > marker.batch:
        raise RefusedError(
            f"the checkpoint is newer than the last commit marker: batch {committed} is committed, "
            f"the marker is of batch {marker.batch}",
            place=place,
            hint="commit markers are lost, or this is another Kafka cluster: connect to the right "
            "one, or put the markers topic back",
        )
    if committed == marker.batch:
        return Continue(marker, executed_only=None)
    if committed < marker.batch - 1 or planned < marker.batch or checkpoint.planned is None:
        raise RefusedError(
            f"the checkpoint is older than the last commit marker: batch {committed} is committed "
            f"and {planned} planned, the marker is of batch {marker.batch}",
            place=place,
            hint="this is a copy from before: put the newest checkpoint folder back",
        )
    differing = _difference(checkpoint.planned.end, marker.end)
    if differing:
        raise RefusedError(
            f"batch {planned} of the checkpoint is not batch {marker.batch} of the last commit "
            f"marker: {differing}",
            place=place,
            hint="the checkpoint was changed or copied: put the lane's own one back",
        )
    return Continue(marker, executed_only=marker.batch)


def _difference(planned: Positions, written: Positions) -> str:
    """The first partition that ends elsewhere, in words; empty if there is none."""
    for key in sorted({*planned, *written}):
        if planned.get(key) != written.get(key):
            where = f"input {key.input}, topic {key.topic}, partition {key.partition}"
            return f"{where} ends at {_end(planned, key)} there and at {_end(written, key)} here"
    return ""


def _end(positions: Mapping[InputPartition, int], key: InputPartition) -> str:
    return str(positions[key]) if key in positions else "no position"
