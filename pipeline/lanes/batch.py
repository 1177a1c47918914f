"""Computation of the commit marker of a batch, and detection of repeated batches. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.boundaries.next_batch import Batch
from pipeline.boundaries.promise import watermark_for
from pipeline.errors import BrokenInvariantError, RetryError
from pipeline.ids import BatchId, Epoch, Millis, Offset, SchemaHandle
from pipeline.lanes.gaps import still_open
from pipeline.lanes.marker_invariants import check_follows
from pipeline.lanes.needed_letters import DeadLetterSpan, letters_from
from pipeline.markers.commit_marker import CommitMarker, Judged, Totals
from pipeline.markers.positions import InputPartition, MarkedSource, Positions
from pipeline.markers.refused import Refused
from pipeline.network.boxes.shape import Shape, Stateless

UNLIKE: Final = (
    "a function of a Python box has to give the same for the same row, always: mend it and deploy"
)
"""Hint for a function that is not deterministic."""


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """Metrics, positions and watermarks of one executed batch.

    Args:
        end: positions after the batch, for every assigned partition.
        late_ms: the watermark at or below which rows of this batch were late; None before any.
        eviction_ms: the watermark that closed windows and dropped state in this batch.
        records: read from the data and redrive topics.
        bad: number of those that must become dead letters, without late ones.
        unknown: schemas of records that the query was not planned with, the largest of each input.
        late: rows that were dropped as late (Spark counts groups, so only zero or not is exact).
        largest: the largest event time of good rows, per data partition that had any; that of
            redriven rows for every partition that they may have come from.
        skipped: records whose event time was settled before their source was first read.
        failed: path → checksum of the records that failed on it; only paths with user functions.
    """

    batch: BatchId
    end: Positions
    late_ms: Millis | None
    eviction_ms: Millis | None
    records: int
    bad: int
    unknown: tuple[SchemaHandle, ...]
    late: int
    largest: Mapping[InputPartition, Millis]
    failed: Mapping[str, int] = field(default_factory=dict)
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Written:
    """Counts of the records that a batch writes besides its marker.

    Args:
        records: number of results.
        dead_letters: number of records and results that could not be processed.
        late: number of those that were late.
        refused: counts of dead letters that have a limit, with those of earlier batches.
        checksum: of the records in the dead letters; see `Judged`.
        results: checksum of the results; see `Judged`.
    """

    records: int
    dead_letters: int
    late: int
    refused: Mapping[str, Refused] = field(default_factory=dict)
    checksum: int = 0
    results: int | None = None


class RepeatedOtherwiseError(RetryError):
    """A written batch makes other decisions when it is executed again for its state.

    The state in its checkpoint does not match the written output: it must be rebuilt from the log.
    """

    code = "repeated-otherwise"


def check_planned(planned: Batch, shape: Shape, before: CommitMarker, facts: BatchFacts) -> None:
    """Compare an executed batch with its plan, before anything of it is written.

    Args:
        planned: the plan.
        shape: what the lane computes.
        before: the marker of the batch before; of this batch, if it is a repeat.
        facts: of the batch.

    Raises:
        BrokenInvariantError: Spark has read up to another offset, or under another watermark.
    """
    place = f"batch {facts.batch} of incarnation {before.incarnation}"
    for at in sorted({*planned.end, *facts.end}):
        if planned.end.get(at) != facts.end.get(at):
            raise BrokenInvariantError(
                f"the batch was planned up to offset {planned.end.get(at)} and executed up to "
                f"{facts.end.get(at)} in topic {at.topic}, partition {at.partition}",
                place=place,
            )
    if isinstance(shape, Stateless):
        return
    watermark_ms = before.eviction_ms
    if planned.event_ms is not None:
        watermark_ms = watermark_for(shape, planned.event_ms)
    if watermark_ms != facts.eviction_ms:
        raise BrokenInvariantError(
            f"the batch was planned under watermark {watermark_ms} and executed under "
            f"{facts.eviction_ms}",
            place=place,
        )


def passed_on(last: CommitMarker, boundary_ms: Millis, now_ms: Millis) -> CommitMarker:
    """The marker of a lane that promises more without a batch: only promise and time change.

    Raises:
        BrokenInvariantError: the promise would decrease.
    """
    marker = replace(last, boundary_ms=boundary_ms, written_at_ms=now_ms)
    check_follows(last, marker)
    return marker


def is_repeat(marker: CommitMarker, facts: BatchFacts) -> bool:
    """Whether the batch was already written, so that it is executed but not written again.

    After the marker of batch n of an incarnation comes batch n again, for its state, or batch
    n + 1. The start has compared marker and checkpoint, so any other batch means that the query
    runs in files that the start has not read: the lane stops, since the cause is unknown.

    Raises:
        BrokenInvariantError: it is another batch, or the written one with other ends.
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
    return True


def decided_otherwise(marker: CommitMarker, facts: BatchFacts) -> str:
    """Describe how the decisions of a repeated batch differ from the written ones; empty: not.

    The refused records are not compared: that takes an inspection.
    """
    judged = marker.judged
    if judged is None:
        return "it is no batch that may be executed again"
    pairs = (
        ("records read", judged.records, facts.records),
        ("bad records", judged.bad, facts.bad),
        ("any late records", judged.late, facts.late > 0),
        ("checksum of what functions refused", judged.failed, sum(facts.failed.values())),
        ("watermark of late records", marker.late_ms, facts.late_ms),
        ("watermark of the state", marker.eviction_ms, facts.eviction_ms),
    )
    return "; ".join(f"{what}: {now}, not {was}" for what, was, now in pairs if now != was)


def _with_batch(source: MarkedSource, start: Positions, end: Positions) -> MarkedSource:
    """Set `begun` of a source whose topic the batch read."""
    topic = source.topics[0][0]
    read = any(
        offset > start.get(at, offset)
        for at, offset in end.items()
        if at.input == source.name and at.topic == topic
    )
    return replace(source, begun=True) if read and not source.begun else source


def next_marker(  # noqa: PLR0913 - what a marker adds to the last one; all by keyword
    last: CommitMarker,
    facts: BatchFacts,
    written: Written,
    *,
    epoch: Epoch,
    needed: Positions,
    letters: Sequence[DeadLetterSpan],
    output_ends: Mapping[int, Offset],
    boundary_ms: Millis | None,
    now_ms: Millis,
) -> CommitMarker:
    """Compute the marker of the batch after `last`; `letters`: the open spans, oldest first.

    Raises:
        BrokenInvariantError: the batch does not follow on the last marker.
    """
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
    marker = CommitMarker(
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
        letters=letters[0].topic_id if letters else last.letters,
        letters_from=letters_from(letters),
        output=last.output,
        chosen=last.chosen,
        anew=last.anew,
        output_ends=output_ends,
        sources=tuple(_with_batch(one, last.end, facts.end) for one in last.sources),
        left=last.left,
        judged=Judged(
            records=facts.records,
            bad=facts.bad,
            late=facts.late > 0 or written.late > 0,
            refused=written.checksum,
            failed=sum(facts.failed.values()),
            results=written.results,
        ),
        plan=last.plan,
        decided=last.decided,
        retired=last.retired,
        outputs_left=last.outputs_left,
        gap=still_open(last.gap, boundary_ms),
        repeated=last.repeated,
    )
    check_follows(last, marker)
    return marker
