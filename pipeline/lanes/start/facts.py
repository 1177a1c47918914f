"""Inputs of the start decision: checkpoint facts, the user's choice, and the start request."""

from dataclasses import dataclass, field

from pipeline.ids import BatchId, Epoch, Incarnation, Millis, StreamName
from pipeline.lanes.batch_size import RECORDS_PER_BATCH
from pipeline.markers.commit_marker import CommitMarker
from pipeline.markers.deploys import NO_DEPLOY, DeployId
from pipeline.markers.positions import MarkedSource, Positions
from pipeline.planner.state import OnChange


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """The newest batch whose end positions are in the checkpoint, committed there or not."""

    batch: BatchId
    end: Positions


@dataclass(frozen=True, slots=True)
class CommittedState:
    """The state in a checkpoint.

    Args:
        batch: the last batch that Spark committed.
        end: positions after it.
        watermark_ms: in force in it; None: none.
    """

    batch: BatchId
    end: Positions
    watermark_ms: Millis | None

    def is_at(self, end: Positions, watermark_ms: Millis | None) -> bool:
        """Whether it is the state at these positions, under this watermark."""
        return dict(self.end) == dict(end) and self.watermark_ms == watermark_ms


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """Contents of a checkpoint folder: the lane's own copy, which no other process changes.

    Args:
        incarnation: the incarnation of the lane that it belongs to.
        committed: the last batch that Spark committed in it; None if there is none.
        planned: the newest planned batch; None if there is none.
        foreign: why this engine must not read its state; empty: it may.
        state: of the last committed batch; None: there is none, or it is not known where it ended.
        followed: whether a follower of the incarnation has made it: its batches have numbers of
            their own.
    """

    incarnation: Incarnation
    committed: BatchId | None
    planned: PlannedBatch | None
    foreign: str = ""
    state: CommittedState | None = None
    followed: bool = False


@dataclass(frozen=True, slots=True)
class Unusable:
    """There is no usable checkpoint; `why` is the reason, for the log message of the rebuild."""

    why: str


@dataclass(frozen=True, slots=True)
class StateChoice:
    """The user's choice for the state, valid while the last marker is of that incarnation."""

    on_change: OnChange
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class StartRequest:
    """Request to start a lane.

    Args:
        epoch: the ownership under which it starts.
        state: digest of the settings that decide the contents of its state.
        stateful: whether it keeps state.
        on_change: the user's choice for the state; None: continue it exactly.
        place: names the fragment, for errors.
        most: maximum number of records in a batch now.
        dead_letter_topic_id: Kafka's id of its dead-letter topic.
        sources: its sources, in the order of its plan.
        same_sources: whether the marker's lane has read the same sources in the same order.
        plan: the digest of its whole plan.
        ran_before: whether a first marker was committed, by the catalog.
        derived: its derived streams.
        positions: next offsets in each present partition: those of the marker, or the first record
            of a new partition.
        anew: whether the lane begins anew from the marker, in a topic with results of others.
        deploy: the deploy of the lane's version of the network.
        amnesia: whether it begins with an empty state rather than build it from the log.
    """

    epoch: Epoch
    state: str
    stateful: bool
    on_change: OnChange | None
    place: str
    most: int = RECORDS_PER_BATCH
    dead_letter_topic_id: str = ""
    sources: tuple[MarkedSource, ...] = ()
    same_sources: bool = True
    plan: str = ""
    ran_before: bool = False
    derived: frozenset[StreamName] = frozenset()
    positions: Positions = field(default_factory=dict)
    anew: bool = False
    deploy: DeployId = NO_DEPLOY
    amnesia: bool = False

    @property
    def chosen(self) -> bool:
        """Whether the user's choice decides the start, rather than the state of its lane."""
        return self.on_change is not None or self.anew

    def fits(self, marker: CommitMarker) -> bool:
        """Whether the state of the marker's lane fits this lane."""
        return self.same_sources and marker.state == self.state
