"""The effects of an agent's decisions. An effect contains everything needed to perform it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.boundaries.profile import DerivedInput
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import Transfer
from pipeline.catalog.snapshot import Deployed, Leaving, VersionId
from pipeline.errors import MedusaError
from pipeline.event_log.event import LoggedEvent
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    FragmentId,
    LaneId,
    RunNumber,
    TopicId,
    TopicName,
)
from pipeline.lanes.expiring import LogNeeds
from pipeline.planner.plan import Fragment, Kept


@dataclass(frozen=True, slots=True)
class MakePlan:
    """Read a version of a network and plan it; a `PlanMade` or `PlanFailed` follows."""

    version: VersionId


@dataclass(frozen=True, slots=True)
class StartLane:
    """Claim the fragment and start a lane of it; one `LaneStopped` of this run follows.

    Args:
        lane: its id.
        run: the number of this start.
        deployed: its fragment in the catalog.
        fragment: the deployed plan of the fragment.
    """

    lane: LaneId
    run: RunNumber
    deployed: Deployed
    fragment: Fragment


@dataclass(frozen=True, slots=True)
class StopLane:
    """Let the current batch finish, then stop the lane's query.

    It may reach a lane that is still starting: then the start is abandoned, or the effect is sent a
    second time when the lane has started. Either way a `LaneStopped` follows.
    """

    lane: LaneId


@dataclass(frozen=True, slots=True)
class SendActivity:
    """Send the readers of a fragment's output whether the lane is idle: see `ActivityRecord`.

    Args:
        lane: its id.
        topic: its output topic.
        topic_id: Kafka's id of that.
        writer: the name under which its boundaries are published.
        epoch: of its ownership.
        idle: whether the lane is idle.
    """

    lane: LaneId
    topic: TopicName
    topic_id: TopicId
    writer: str
    epoch: Epoch
    idle: bool


@dataclass(frozen=True, slots=True)
class NoteRetention:
    """Send a lane what it removes of the topics that it writes."""

    lane: LaneId
    kept: Kept


@dataclass(frozen=True, slots=True)
class FindExpiring:
    """Find records that a lane needs and that retention removes.

    If Kafka answers, an `ExpiringFound` follows.
    """

    lane: LaneId
    needs: LogNeeds


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Write the observed state of a fragment into the catalog.

    `counted`: whether this node has read its counts; otherwise the last reported counts remain.
    """

    lane: LaneId
    status: FragmentStatus
    counted: bool


@dataclass(frozen=True, slots=True)
class WatchTopics:
    """Poll the end offsets of these topics from now on, and read the boundaries of these inputs."""

    topics: frozenset[TopicName]
    derived: frozenset[DerivedInput]


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Rehearse these fragments, which other nodes run, and no others.

    Args:
        fragments: as long as this node is idle.
        standbys: those that this node is a secondary of, without a follower; also if it has work.
        is_free: whether a node that has work may begin a rehearsal now.
    """

    fragments: tuple[tuple[Deployed, Fragment], ...] = ()
    standbys: tuple[tuple[Deployed, Fragment], ...] = ()
    is_free: bool = True


@dataclass(frozen=True, slots=True)
class Following:
    """A fragment that this node follows.

    Args:
        deployed: the fragment in the catalog.
        fragment: its plan; or why this program has none.
        transfer: its move to this node; None: it is not moved here.
        is_standby: whether this node is one of its secondaries, or was until it is to run it.
        is_begun: whether it is followed from now on; otherwise only if it is followed already.
    """

    deployed: Deployed
    fragment: Fragment | MedusaError
    transfer: Transfer | None
    is_standby: bool = False
    is_begun: bool = True

    @property
    def epoch(self) -> Epoch:
        """Of the ownership that is followed; `NO_EPOCH`: there is none."""
        if self.transfer is not None:
            return self.transfer.epoch
        return self.deployed.owner.epoch if self.deployed.owner else NO_EPOCH

    @property
    def is_active(self) -> bool:
        """Whether the owner's batches are repeated; else only its checkpoint is copied."""
        return self.transfer is not None or self.deployed.record.active_standbys > 0

    @property
    def checkpoint_every_ms(self) -> int:
        """How often the checkpoint is copied that this node is to have; 0: none is."""
        return 0 if self.is_active else self.deployed.record.checkpoint_every_ms

    def goes_on(self, other: "Following") -> bool:
        """Whether its follower can be that of the other one.

        It can if that is the same lane, followed in the same way, not planned for the first time,
        and no other move.
        """
        first = isinstance(self.fragment, MedusaError) and not isinstance(
            other.fragment, MedusaError
        )
        one, two = self.transfer, other.transfer
        same = one is None or two is None or one.is_same(two)
        same = same and self.checkpoint_every_ms == other.checkpoint_every_ms
        return same and not first and self.lane == other.lane

    @property
    def lane(self) -> tuple[object, ...]:
        """What decides which lane is followed; its redrive topic may come later."""
        one = self.deployed
        topics = tuple(ids for ids in one.record.topic_ids if ids[0] != one.names.redrive)
        return one.version, topics, one.record.choice, one.begins, one.succession


@dataclass(frozen=True, slots=True)
class Follow:
    """Follow these fragments, and no others.

    Args:
        fragments: to follow.
        gone: fragments that the catalog does not have any more: nothing is remembered of them.
    """

    fragments: tuple[Following, ...]
    gone: frozenset[FragmentId] = frozenset()


@dataclass(frozen=True, slots=True)
class CopyCheckpoints:
    """Copy the checkpoints of these fragments, each so often, as long as they run here."""

    every_ms: Mapping[FragmentId, int]


@dataclass(frozen=True, slots=True)
class ReleaseFragment:
    """Give up a fragment that another node is to run, or none; no lane of it runs here.

    Args:
        fragment: its id.
        leaving: what the release was decided by; if that has changed, nothing happens.
    """

    fragment: FragmentId
    leaving: Leaving


@dataclass(frozen=True, slots=True)
class LogEvent:
    """Write an entry into the event log."""

    event: LoggedEvent


Effect = (
    MakePlan
    | StartLane
    | StopLane
    | SendActivity
    | NoteRetention
    | FindExpiring
    | PublishStatus
    | WatchTopics
    | Rehearse
    | ReleaseFragment
    | LogEvent
    | Follow
    | CopyCheckpoints
)
