"""A finished batch → the marker that its transaction carries. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import BatchId, Epoch, Millis, SchemaHandle
from pipeline.lanes.limits import Refused
from pipeline.lanes.markers import CommitMarker, Totals
from pipeline.lanes.positions import InputPartition, Positions

UNLIKE: Final = "a function of a Python box has to give the same for the same row, always"
"""What to do about one that does not."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """What the engine says about one executed batch.

    Args:
        end: positions after the batch, for every assigned partition.
        late_ms: the watermark at or below which rows of this batch were late; None before any.
        eviction_ms: the watermark that closed windows and dropped state in this batch.
        advance_ms: the largest advance read in this batch.
        records: read from the data and redrive topics.
        bad: of those, how many have to go to the dead letters; late ones not counted.
        unknown: schemas that they name and the query was not planned with, the largest of each
            input.
        late: rows that were dropped as late (Spark counts groups, so only zero or not is exact).
        largest: the largest event time of good rows, per data partition that had any; that of
            redriven rows for every partition that they may have come from.
        skipped: records of a time that was settled before their source was first read.
        failed: path → the sum of the checksums of the records that failed on it; of those paths
            only on which functions of users decide.
    """

    batch: BatchId
    end: Positions
    late_ms: Millis | None
    eviction_ms: Millis | None
    advance_ms: Millis | None
    records: int
    bad: int
    unknown: tuple[SchemaHandle, ...]
    late: int
    largest: Mapping[InputPartition, Millis]
    failed: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """What a batch writes besides its marker; `refused` is counted with what was before it."""

    records: int
    dead_letters: int
    late: int
    refused: Mapping[str, Refused] = field(default_factory=dict)


def is_repeat(marker: CommitMarker, facts: BatchFacts) -> bool:
    """Whether the batch was written already, so that it must be executed but not written again.

    After the marker of batch n of an incarnation comes batch n again, for its state, or batch
    n + 1. The start has compared marker and checkpoint, so any other batch means that the query
    runs in files that the start has not seen: the lane stops, since the cause is unknown.

    Raises:
        BrokenInvariantError: it is another batch, or has the number of the written one and other
            ends.
        RetryError: a function of a user decided otherwise about its records this time.
    """
    if facts.batch == marker.batch + 1:
        return False
    if facts.batch != marker.batch:
        raise BrokenInvariantError(
            f"batch {facts.batch} was executed after the commit marker of batch {marker.batch}",
            place=f"incarnation {marker.incarnation}",
            hint="nothing of it was written; look for another process that writes into the "
            "checkpoint folder, then `medusa pause` and `medusa resume` the fragment",
        )
    for at in sorted({*facts.end, *marker.end}):
        if marker.end.get(at) != facts.end.get(at):
            raise BrokenInvariantError(
                f"batch {facts.batch} was written up to offset {marker.end.get(at)} and is planned "
                f"up to {facts.end.get(at)}",
                place=f"input {at.input}, topic {at.topic}, partition {at.partition}",
            )
    if sum(facts.failed.values()) != marker.failed:
        raise RetryError(
            f"a function failed for other records of batch {facts.batch} than when it was written",
            hint=UNLIKE,
        )
    return True


def next_marker(  # noqa: PLR0913 - what a marker adds to the last one; all by keyword
    last: CommitMarker,
    facts: BatchFacts,
    written: Written,
    *,
    epoch: Epoch,
    needed: Positions,
    boundary_ms: Millis | None,
    now_ms: Millis,
) -> CommitMarker:
    """The marker of a batch that follows `last`."""
    progress = dict(last.progress)
    for partition, largest in facts.largest.items():
        progress[partition] = max(largest, progress.get(partition, largest))
    totals = Totals(
        records_in=last.totals.records_in + facts.records,
        records_out=last.totals.records_out + written.records,
        dead_letters=last.totals.dead_letters + written.dead_letters,
        late_dropped=last.totals.late_dropped + written.late,
        skipped=last.totals.skipped + facts.skipped,
    )
    return CommitMarker(
        epoch=epoch,
        incarnation=last.incarnation,
        batch=facts.batch,
        start=last.end,
        end=facts.end,
        needed=needed,
        late_ms=facts.late_ms,
        eviction_ms=facts.eviction_ms,
        progress=progress,
        late_settled=facts.batch,
        boundary_ms=boundary_ms,
        totals=totals,
        written_at_ms=now_ms,
        state=last.state,
        refused=written.refused,
        letters=last.letters,
        failed=sum(facts.failed.values()),
        sources=last.sources,
        left=last.left,
    )
