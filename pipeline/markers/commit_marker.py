"""Commit markers: progress of a stable lane, written in the transaction of its output.

The marker is authoritative for a lane. It is a record in the fragment's own single-partition topic,
so it becomes visible together with the output that it describes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, TopicId, TopicName
from pipeline.markers.cut import Cut
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.markers.gap import Gap
from pipeline.markers.positions import InputPartition, LeftSource, MarkedSource, Positions
from pipeline.markers.refused import Refused

NO_BATCH = BatchId(-1)
"""The batch of the first marker: it contains start positions, no batch has run."""
CHECKSUM_BYTES = 8
CHECKSUMS = 1 << 8 * CHECKSUM_BYTES
"""Checksums of refused records are added modulo this number."""
OUTPUTS_LEFT = 16
"""Maximum number of former output topics in a marker."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the lane's first start; they are part of the marker, so no restart loses any."""

    records_in: int = 0
    records_out: int = 0
    dead_letters: int = 0
    late_dropped: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """Decisions of a batch about its records, compared when it is executed again.

    Args:
        records: read from the data and redrive topics.
        bad: of those, how many were refused for another reason than lateness.
        late: whether any was late, wholly or for some of its windows.
        refused: sum of the checksums of (place, path, reason) of all records in the dead letters.
        failed: sum of the checksums of the places of the records that user functions refused.
        results: sum of the checksums of the results; None: not known, as in a stateless lane.
    """

    records: int
    bad: int
    late: bool
    refused: int
    failed: int
    results: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOutput:
    """Promise and positions of fragments that no longer write an output topic.

    Args:
        promised_ms: the largest boundary promised for it; None: there was none.
        read: positions read for it, per topic id and partition.
    """

    promised_ms: Millis | None
    read: Mapping[tuple[TopicId, int], Offset]


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """Progress of a lane, valid once its transaction is committed.

    Args:
        epoch: the epoch under which it was written.
        incarnation: of the lane.
        batch: number of the batch, within the incarnation.
        start: positions before the batch.
        end: positions after it.
        needed: the oldest positions that any open window or kept row still needs.
        late_ms: the watermark at or below which rows of this batch were late; None before any.
        eviction_ms: the watermark that this batch closed windows and dropped state with.
        progress: largest event time per input partition, in all batches so far. That of external
            partitions decides event time; that of derived ones only decides after a restart how
            long their records are needed.
        late_settled: the last batch whose late rows are in the dead letters.
        boundary_ms: the promise of the lane about its output.
        totals: counts since the first start.
        written_at_ms: wall time at which the batch was written; later copies keep it.
        state: digest of the plan that decides the contents of the state.
        refused: counts of dead letters of the streams and boxes that have a limit.
        letters: Kafka's id of the dead-letter topic that a rebuild reads; if the topic was created
            again meanwhile, of the oldest that is needed. Empty: there was none.
        letters_from: per partition of that topic the offset from which a rebuild needs dead
            letters; of a missing partition it needs none.
        output: Kafka's id of the output topic.
        output_ends: acknowledged ends of that topic when this batch was written: a lower end means
            that Kafka itself lost records.
        chosen: whether a choice of the user began its incarnation, rather than the state of the
            previous one.
        sources: the sources of these positions, in the order of the plan.
        left: sources that were read earlier and are no longer part of the plan.
        judged: decisions of this batch about its records; None: the batch is never executed again,
            since nothing has run or a rebuild made the state.
        plan: the digest of the plan that the lane ran.
        anew: the deploy for which the fragment began anew, since another one had written its
            output; empty: none.
        decided: the latest deploy whose decisions on positions and state are carried out.
        retired: lowest number for new source ids of the fragment; former lives used those below.
        outputs_left: promise and positions for the latest `OUTPUTS_LEFT` former output topics, by
            their ids.
        gap: what was left out when the lane began with an empty state, as long as results may come
            that it touches; None: nothing was.
        cut: the next batch, if any of its results may be visible before its own marker; None: none
            is.
        repeated: ids of the output topics in which results may come twice.
    """

    epoch: Epoch
    incarnation: Incarnation
    batch: BatchId
    start: Positions
    end: Positions
    needed: Positions
    late_ms: Millis | None
    eviction_ms: Millis | None
    progress: Mapping[InputPartition, Millis]
    late_settled: BatchId
    boundary_ms: Millis | None
    totals: Totals
    written_at_ms: Millis
    state: str
    refused: Mapping[str, Refused] = field(default_factory=dict)
    letters: str = ""
    letters_from: Mapping[int, Offset] = field(default_factory=dict)
    output: str = ""
    output_ends: Mapping[int, Offset] = field(default_factory=dict)
    chosen: bool = False
    sources: tuple[MarkedSource, ...] = ()
    left: tuple[LeftSource, ...] = ()
    judged: Judged | None = None
    plan: str = ""
    anew: str = ""
    decided: DeployId = NO_DEPLOY
    retired: int = 0
    outputs_left: Mapping[str, LeftOutput] = field(default_factory=dict)
    gap: Gap | None = None
    cut: Cut | None = None
    repeated: tuple[str, ...] = ()

    @property
    def reached(self) -> Positions:
        """The positions up to which records were read; those of a cut may have been."""
        return self.end if self.cut is None else self.cut.end

    @property
    def nothing_read(self) -> bool:
        """Whether no batch has run in any incarnation, and nothing is promised."""
        ran = self.batch != NO_BATCH or bool(self.totals.records_in)
        return not ran and self.boundary_ms is None

    @property
    def redrive(self) -> tuple[TopicName, TopicId] | None:
        """The fragment's redrive topic, by name and id; None: it had none."""
        known = (*self.sources, *(one.source for one in self.left))
        return next((one.redrive for one in known if one.redrive is not None), None)

    def left_output(self, output: str) -> LeftOutput | None:
        """Promise and positions of the fragment for an output topic; None: it never wrote it."""
        if self.output != output:
            return self.outputs_left.get(output)
        ids = {(one.name, one.topics[0][0]): one.topic_id for one in self.sources}
        read: dict[tuple[TopicId, int], Offset] = {}
        for at, offset in self.end.items():
            if (topic_id := ids.get((at.input, at.topic))) is not None:
                place = topic_id, at.partition
                read[place] = max(offset, read.get(place, offset))
        return LeftOutput(self.boundary_ms, read)

    def with_output(self, output: str) -> "CommitMarker":
        """The marker of the same lane with another output topic."""
        if self.output == output:
            return self
        left = self.former_outputs(output)
        return replace(self, output=output, output_ends={}, outputs_left=left, cut=None)

    def former_outputs(self, output: str) -> dict[str, LeftOutput]:
        """Promise and positions for all former output topics, once this topic is the output."""
        left = {one: found for one, found in self.outputs_left.items() if one != self.output}
        if self.output and (last := self.left_output(self.output)) is not None:
            left[self.output] = last
        left.pop(output, None)
        return dict(list(left.items())[-OUTPUTS_LEFT:])

    def continues(self, earlier: "CommitMarker") -> bool:
        """Whether its lane continues the earlier marker with the same state and sources."""
        return (
            self.incarnation == earlier.incarnation
            and self.anew == earlier.anew
            and [one.id for one in self.sources] == [one.id for one in earlier.sources]
        )

    @property
    def settled_ms(self) -> Millis | None:
        """Event time up to which results are promised or closed; None: there is none."""
        ends_ms = (ms for ms in (self.eviction_ms, self.boundary_ms) if ms is not None)
        return max(ends_ms, default=None)
