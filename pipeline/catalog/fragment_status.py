"""The observed state of a fragment, as its node reports it."""

from dataclasses import dataclass
from enum import Enum

from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.catalog.records import NodeRecord, Record
from pipeline.ids import (
    Epoch,
    FragmentName,
    Millis,
    NetworkId,
    NodeId,
    TopicName,
)
from pipeline.lanes.expiring import ExpiringRecords
from pipeline.lanes.fork_phases import ForkPhase

AHEAD_LEAST_MS = 10_000
"""Minimum distance of event time beyond a node's clock to be reported: clocks differ a little."""


class LaneState(Enum):
    """The observed state of a fragment's stable lane; the values that `status` shows."""

    PENDING = "pending"
    """No node has claimed it yet."""
    STARTING = "starting"
    REBUILDING = "rebuilding"
    """It rebuilds its state from the log before it starts."""
    RUNNING = "running"
    WAITING = "waiting"
    """A required server does not answer; it continues by itself when the server answers."""
    RESTARTING = "restarting"
    """It failed and is waiting for its next attempt."""
    FAILED = "failed"
    """It failed too often, or must not be restarted automatically."""
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class FragmentStatus(Record):
    """Status of a fragment, as last reported by its owner.

    Args:
        life: the node's start time, as in its record.
        records_in: records read from the inputs since the lane's first start.
        records_out: stable records written since the lane's first start.
        lag_records: offsets between the committed positions and the ends of the inputs; None as
            long as they are not measured.
        lag_ms: age of the oldest unprocessed record, by its Kafka timestamp; 0 if there is none,
            None if it is not measured.
        boundary_ms: the boundary last published for the output.
        dead_letters: written since the lane's first start.
        late_dropped: rows that Spark dropped as late since the lane's first start.
        skipped: records whose event time was settled before their source was first read.
        rebuild_since_ms: start of the rebuild of state in progress; None: no rebuild.
        rebuild_offsets: number of offsets that it reads.
        rebuild_read: number of records that it has read.
        rebuild_batches: number of batches that it is divided into.
        rebuild_batches_done: number of those that are done.
        held_by: the input that delays event time; empty: none.
        held_partition: its partition that does, while others of the input do not; None: all do.
        held_ms: its delay against the most advanced other input; None: unknown.
        held_since_ms: start of the delay.
        held_silent_since_ms: start of that input's silence; None: it is not silent.
        steps_ms: delay of event time behind its inputs because it is released in steps; None: it
            is not.
        stalled_since_ms: since when no batch has ended although records are unread, or one is
            planned; None: batches end, or there is nothing to do.
        pace_ms: least time between two of its batches.
        event_ms: its event time; None: it has none yet, or does not run.
        late_since_ms: since when at least a quarter of what each batch reads is late; None: it is
            not.
        late_span_ms: how long that went on; a batch without records does not count.
        late_read: number of records read in that time.
        late_records: how many of those were late.
        settles_at_ms: when the clock alone, in a silence of all inputs, has moved event time beyond
            all results that are still to come; None: there are none, or an input is active.
        unreachable: partitions of its inputs that do not answer, while it reads the others; empty:
            none.
        writers: the fragments that write its derived inputs, as `participant.network.fragment`;
            empty if it does not run.
        expiring: records that it needs and that retention removes soon, or has removed; None: not
            examined.
        gap_until_ms: event time up to which results are left out since its state was lost; None: it
            was not, or that time is over.
        gap_omitted: number of offsets that were passed over then.
        tentative: phase of its fork; None: it has no tentative results, or does not run.
        tentative_since_ms: since when it is in that phase.
        tentative_held_since_ms: since when results are held back; None: none are.
        tentative_missing: the partitions that they wait for, as `topic/partition`.
        tentative_generation: of the fork that runs; empty: none does.
        tentative_published: tentative results since the lane has started.
        tentative_confirmed: those of which an equal stable one came.
        tentative_replaced: those of which a different stable one came.
        tentative_undone: those of which none came.
        tentative_open: those that are not settled yet, also of an earlier start.
        tentative_problem: why the last fork has failed; empty: it has not.
        tentative_unsettled: why tentative results could not be settled last; empty: they could.
        waits: how long its results usually wait for the last partition of its external inputs;
            None: too little was measured since it has started, or it does not run.
    """

    network: NetworkId
    fragment: FragmentName
    node: NodeId
    epoch: Epoch
    state: LaneState
    reported_at_ms: Millis
    life: Millis
    records_in: int
    records_out: int
    lag_records: int | None
    lag_ms: int | None
    boundary_ms: Millis | None
    dead_letters: int
    late_dropped: int
    skipped: int
    restarts: int
    batch_ms: int
    last_error: str
    inputs: tuple[tuple[TopicName, int], ...]
    """Measured lag in records per input topic."""
    rebuild_since_ms: Millis | None
    rebuild_offsets: int
    rebuild_read: int
    held_by: str
    held_partition: int | None
    held_ms: int | None
    held_since_ms: Millis | None
    held_silent_since_ms: Millis | None
    steps_ms: int | None
    stalled_since_ms: Millis | None
    writers: tuple[str, ...]
    rebuild_batches: int = 0
    rebuild_batches_done: int = 0
    pace_ms: int = 0
    event_ms: Millis | None = None
    late_since_ms: Millis | None = None
    late_span_ms: int = 0
    late_read: int = 0
    late_records: int = 0
    settles_at_ms: Millis | None = None
    unreachable: str = ""
    expiring: tuple[ExpiringRecords, ...] | None = None
    gap_until_ms: Millis | None = None
    gap_omitted: int = 0
    tentative: ForkPhase | None = None
    tentative_since_ms: Millis | None = None
    tentative_held_since_ms: Millis | None = None
    tentative_missing: tuple[str, ...] = ()
    tentative_generation: str = ""
    tentative_published: int = 0
    tentative_confirmed: int = 0
    tentative_replaced: int = 0
    tentative_undone: int = 0
    tentative_open: int = 0
    tentative_problem: str = ""
    tentative_unsettled: str = ""
    waits: UsualWaits | None = None

    @property
    def ahead_ms(self) -> int:
        """How far event time is beyond the clock of the node; 0: it is not, or not by much."""
        beyond_ms = 0 if self.event_ms is None else self.event_ms - self.reported_at_ms
        return beyond_ms if beyond_ms >= AHEAD_LEAST_MS else 0

    @property
    def holder(self) -> str:
        """What holds event time back: an input, with its partition if only that one does."""
        if self.held_partition is None:
            return self.held_by
        return f"{self.held_by}, partition {self.held_partition}"

    def is_of(self, node: NodeRecord) -> bool:
        """Whether the node reported it in this life."""
        return (self.node, self.life) == (node.node, node.started_at_ms)
