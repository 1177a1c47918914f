"""What a start is decided by: a checkpoint, what somebody chose, and the lane that is to start."""

from dataclasses import dataclass, field

from pipeline.ids import BatchId, Epoch, Incarnation, StreamName
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
class CheckpointFacts:
    """What a checkpoint folder holds, a copy of the lane's own that nobody else changes.

    Args:
        incarnation: the life of the lane that it belongs to.
        committed: the last batch that Spark committed in it; None if there is none.
        planned: the newest planned batch; None if there is none.
        foreign: why this engine must not read the state in it, in words; empty: it may.
    """

    incarnation: Incarnation
    committed: BatchId | None
    planned: PlannedBatch | None
    foreign: str = ""


@dataclass(frozen=True, slots=True)
class Unusable:
    """There is no checkpoint to go on from: `why` completes "the state is rebuilt, since …"."""

    why: str


@dataclass(frozen=True, slots=True)
class StateChoice:
    """What somebody chose, for as long as the lane's last marker is of that incarnation."""

    on_change: OnChange
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to start.

    Args:
        epoch: the ownership under which it starts.
        state: the digest of everything that decides what its state holds.
        stateful: whether it keeps any.
        on_change: what was chosen to happen with the state; None: go on with it, exactly.
        place: names the fragment, for errors.
        most: how many records a batch may read now.
        letters: Kafka's id of its dead-letter topic.
        sources: what it reads, in the order of its plan.
        same_sources: whether the marker's lane has read the same, in the same order.
        plan: the digest of its whole plan.
        ran_before: whether the catalog says that a first marker was committed.
        derived: the streams that fragments write.
        positions: where to read on in each partition that there is now: where the marker stands,
            or at the first record of one that came later.
        anew: whether the marker is the one that it begins anew from, beside others' results.
        deploy: whose version of the network the lane is of.
    """

    epoch: Epoch
    state: str
    stateful: bool
    on_change: OnChange | None
    place: str
    most: int = RECORDS_PER_BATCH
    letters: str = ""
    sources: tuple[MarkedSource, ...] = ()
    same_sources: bool = True
    plan: str = ""
    ran_before: bool = False
    derived: frozenset[StreamName] = frozenset()
    positions: Positions = field(default_factory=dict)
    anew: bool = False
    deploy: DeployId = NO_DEPLOY

    @property
    def chosen(self) -> bool:
        """Whether it starts as somebody chose, rather than from what its lane has left."""
        return self.on_change is not None or self.anew

    def fits(self, marker: CommitMarker) -> bool:
        """Whether what the marker's lane has kept is what this one needs."""
        return self.same_sources and marker.state == self.state
