"""Commit markers: what a stable lane has done, written in the transaction that does it.

The marker is the truth about a lane. It is a record in the fragment's own single-partition topic,
so that it is visible exactly when the output that it describes is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, TopicId, TopicName
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.markers.positions import InputPartition, LeftSource, MarkedSource, Positions
from pipeline.markers.refused import Refused

NO_BATCH = BatchId(-1)
"""The batch of the first marker: positions are settled, nothing has run."""
OUTPUTS_LEFT = 16
"""Of so many a marker says what was left in them."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the lane's first start; they travel with the marker, so no restart loses any."""

    records_in: int = 0
    records_out: int = 0
    dead_letters: int = 0
    late_dropped: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """Record of what a batch decided about its records, to compare with when it is executed again.

    Args:
        records: read from the data and redrive topics.
        bad: of those, how many were refused for another reason than lateness.
        late: whether any was late, wholly or for some of its windows.
        refused: sum of the checksums of (place, path, reason) of all records in the dead letters.
        failed: sum of the checksums of the places of the records that functions of users refused.
    """

    records: int
    bad: int
    late: bool
    refused: int
    failed: int


@dataclass(frozen=True, slots=True)
class LeftOutput:
    """What has been done for an output topic by those who write it no more.

    Args:
        promised_ms: the largest boundary that was promised of it; None: there was none.
        read: how far was read for it, per topic id and partition.
    """

    promised_ms: Millis | None
    read: Mapping[tuple[TopicId, int], Offset]


@dataclass(frozen=True, slots=True)
class CommitMarker:
    """What is true once its transaction is committed.

    Args:
        epoch: the ownership under which it was written.
        incarnation: the life of the lane, and
        batch: the number of the batch in it, that it describes.
        start: positions before the batch.
        end: positions after it.
        needed: the oldest positions that any open window or kept row still needs.
        late_ms: the watermark at or below which rows of this batch were late; None before any.
        eviction_ms: the watermark that this batch closed windows and dropped state with.
        progress: largest event time seen per input partition, in all batches so far. That of
            external partitions decides event time; that of derived ones only tells after a restart
            how long their records are needed.
        late_settled: the last batch whose late rows are in the dead letters.
        boundary_ms: what the lane has promised about its output.
        totals: counts since the first start.
        written_at_ms: wall time at which the batch was written; later copies keep it.
        state: the digest of the plan that decides what the state holds.
        refused: the dead letters of the streams and boxes that have a limit of them.
        letters: Kafka's id of the topic whose dead letters name what a rebuild has to leave out; if
            it was made again meanwhile, of the oldest that is needed. Empty: there was none.
        letters_from: per partition of that topic the offset from which a rebuild needs dead
            letters; of a partition that is missing it needs none.
        output: Kafka's id of the output topic.
        output_ends: where that topic ended at least when this batch was written: acknowledged then,
            so that an end below it means that Kafka itself lost records.
        chosen: whether its incarnation began as somebody chose, rather than from what the one
            before had left.
        sources: whose positions these are, in the order of the plan.
        left: sources that were read earlier, and are no part of the plan any more.
        judged: what this batch decided about its records; None: no batch that may be executed
            again, since nothing has run or a rebuild made the state.
        plan: the digest of the plan that the lane ran.
        anew: names the deploy for which the fragment has begun anew, since another one had written
            its output; empty: it never has.
        decided: the deploy whose decisions are carried out: its inputs begin where was chosen, and
            what was chosen for its state is done.
        retired: no source of the fragment gets an id with a lower number: former lives have had
            them.
        outputs_left: what the fragment has left in the output topics that it wrote before, by their
            ids; of the latest `OUTPUTS_LEFT`.
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

    @property
    def nothing_read(self) -> bool:
        """Whether no batch has run in any incarnation: nothing was read, nothing is promised."""
        ran = self.batch != NO_BATCH or bool(self.totals.records_in)
        return not ran and self.boundary_ms is None

    @property
    def redrive(self) -> tuple[TopicName, TopicId] | None:
        """The fragment's redrive topic, by name and id; None: it had none."""
        known = (*self.sources, *(one.source for one in self.left))
        return next((one.redrive for one in known if one.redrive is not None), None)

    def left_in(self, output: str) -> LeftOutput | None:
        """What the fragment has done for an output topic; None: nothing is known of it."""
        if self.output != output:
            return self.outputs_left.get(output)
        ids = {(one.name, one.topics[0][0]): one.topic_id for one in self.sources}
        read: dict[tuple[TopicId, int], Offset] = {}
        for at, offset in self.end.items():
            if (topic_id := ids.get((at.input, at.topic))) is not None:
                place = topic_id, at.partition
                read[place] = max(offset, read.get(place, offset))
        return LeftOutput(self.boundary_ms, read)

    def writing(self, output: str) -> "CommitMarker":
        """The same of a lane that writes another topic from now on."""
        if self.output == output:
            return self
        return replace(self, output=output, output_ends={}, outputs_left=self.left_for(output))

    def left_for(self, output: str) -> dict[str, LeftOutput]:
        """What it leaves in all output topics, when it goes on, or begins anew, in this one."""
        left = {one: found for one, found in self.outputs_left.items() if one != self.output}
        if self.output and (last := self.left_in(self.output)) is not None:
            left[self.output] = last
        left.pop(output, None)
        return dict(list(left.items())[-OUTPUTS_LEFT:])

    def goes_on_from(self, earlier: "CommitMarker") -> bool:
        """Whether its lane has only read on since, with the same state, from the same sources."""
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
