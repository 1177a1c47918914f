"""The state of an agent: immutable values, replaced by `decide`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pipeline.agent.effects import Following, Rehearse
from pipeline.agent.late import LateRun
from pipeline.agent.plans import Plans
from pipeline.agent.takeover import Takeover
from pipeline.agent.tentative import TentativeRun
from pipeline.boundaries.ends import Ends
from pipeline.boundaries.lane_time import LaneTime
from pipeline.boundaries.profile import DerivedInput
from pipeline.boundaries.usual_waits import UsualWaits
from pipeline.catalog.fragment_status import FragmentStatus
from pipeline.catalog.records import Begun, NodeRecord, Transfer
from pipeline.catalog.snapshot import Deployed, Leaving
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    NO_EPOCH,
    NO_RUN,
    Epoch,
    FragmentId,
    LaneId,
    Millis,
    NetworkLife,
    NetworkVersion,
    NodeId,
    Offset,
    ParticipantId,
    RunNumber,
    SteadyMillis,
    StreamName,
    TopicName,
)
from pipeline.lanes.expiring import ExpiringRecords
from pipeline.lanes.lifecycle import Happening, Phase, move
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment, Kept


@dataclass(frozen=True, slots=True)
class Desired:
    """The desired state of a fragment on this node, from the catalog.

    A change of this value restarts the lane.

    Args:
        fragment: its id.
        life: of its network.
        version: the version of the network that last changed the fragment or its topics.
        digest: of the fragment's plan, as deployed.
        running: whether it should run.
        choice: the chosen handling of its state; None: no choice.
        topic_ids: the ids of its topics at its last deploy.
        begins: first positions of inputs that it has never read, as decided by deploys.
    """

    fragment: FragmentId
    life: NetworkLife
    version: NetworkVersion
    digest: str
    running: bool
    choice: StateChoice | None = None
    topic_ids: tuple[tuple[TopicName, str], ...] = ()
    begins: tuple[Begun, ...] = ()


def desired_of(deployed: Deployed) -> Desired:
    """The desired state of a fragment that is assigned to this node."""
    record = deployed.record
    return Desired(
        fragment=deployed.id,
        life=deployed.network.life,
        version=record.version,
        digest=record.digest,
        running=deployed.running,
        choice=deployed.choice,
        topic_ids=record.topic_ids,
        begins=record.begins,
    )


@dataclass(frozen=True, slots=True)
class ObservedEnds:
    """The end of an input's topic at a steady time, for computing the age of records."""

    at_ms: SteadyMillis
    ends: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """Progress of a state rebuild, begun at a steady time; as in `LaneRebuilding`."""

    since_ms: SteadyMillis
    offsets: int
    read: int
    batches: int
    batches_done: int


# --- phases: each contains the facts that exist in it; times are steady ---------------------------


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing runs or is pending."""

    phase: ClassVar = Phase.STOPPED


@dataclass(frozen=True, slots=True)
class Starting:
    """A start was requested; it has neither succeeded nor failed yet.

    Args:
        desired: the desired state that the start implements.
        deployed: the fragment when the start was decided.
        fragment: its plan; None: the start waits for it.
        since_ms: when it was requested.
        rebuilding: progress, while the start rebuilds the state from the log.
    """

    phase: ClassVar = Phase.STARTING
    desired: Desired
    deployed: Deployed
    fragment: Fragment | None
    since_ms: SteadyMillis
    rebuilding: Rebuilding | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """The query runs.

    Args:
        desired: the desired state that its start implemented.
        fragment: the plan that it runs.
        time: its event time, as the lane last reported it.
        since_ms: when it began to run.
        batch_ended_ms: when its last batch ended; `since_ms` until the first one has.
        read_at_ms: when the marker that it began with was written: records unread then may have
            waited since.
        ends_log: per input, earlier observed ends that are not yet processed, oldest first.
        idle_sent_at_ms: when the idle signal was last sent, or may have been, by the previous
            lane; None: the readers' last signal was `active`.
        kept: what the lane removes of the topics that it writes, as last sent to it; None: not yet.
        late: its latest batches, if many of their records were late.
        tentative: of its tentative results; None: it has not reported any.
        waits: how long its results usually wait for input; None: too little was measured.
    """

    phase: ClassVar = Phase.RUNNING
    desired: Desired
    fragment: Fragment
    time: LaneTime
    since_ms: SteadyMillis
    batch_ended_ms: SteadyMillis
    read_at_ms: SteadyMillis
    ends_log: Mapping[StreamName, tuple[ObservedEnds, ...]] = field(default_factory=dict)
    idle_sent_at_ms: SteadyMillis | None = None
    kept: Kept | None = None
    late: LateRun | None = None
    tentative: TentativeRun | None = None
    waits: UsualWaits | None = None


@dataclass(frozen=True, slots=True)
class Stopping:
    """A stop was requested; the current batch ends first. `running`: None if it had not started."""

    phase: ClassVar = Phase.STOPPING
    start: Starting | None
    running: Running | None


@dataclass(frozen=True, slots=True)
class BackingOff:
    """The lane failed; its next try is at `retry_at_ms`."""

    phase: ClassVar = Phase.BACKING_OFF
    retry_at_ms: SteadyMillis


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another epoch owned the fragment; a restart needs a new assignment from the catalog."""

    phase: ClassVar = Phase.FENCED


@dataclass(frozen=True, slots=True)
class Failed:
    """No more tries until the desired state changes."""

    phase: ClassVar = Phase.FAILED


LanePhase = Stopped | Starting | Running | Stopping | BackingOff | Fenced | Failed


@dataclass(frozen=True, slots=True)
class Tries:
    """Counts of a lane's failed starts.

    Args:
        failures: in a row, without five minutes of success in between; external ones excluded.
        waits: external failures in a row, without success or another failure in between.
        restarts: since this agent began, without those caused by a deploy.
        last_error: one line; remains until the desired state changes.
    """

    failures: int = 0
    waits: int = 0
    restarts: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """The last report of a lane, and when it was sent (steady time)."""

    status: FragmentStatus
    at_ms: SteadyMillis


@dataclass(frozen=True, slots=True)
class Expiring:
    """Records that a lane needs and that retention removes.

    Args:
        examined_at_ms: when they were last looked for (steady time); None: never.
        found: the last answer; None: none yet.
        ran_at_ms: when the lane was last seen running (steady time); None: never.
    """

    examined_at_ms: SteadyMillis | None = None
    found: tuple[ExpiringRecords, ...] | None = None
    ran_at_ms: SteadyMillis | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """The state of one lane on this node.

    Args:
        id: of the lane.
        assigned: its fragment, if the catalog assigns it to this node; None: it is not assigned.
        desired: the desired state of that fragment.
        phase: the phase of its lifecycle, with the facts of the phase.
        run: the number of its last start.
        life: of its network, at its last start; None: it was never started.
        epoch: of the last start that claimed one.
        marker: its last commit marker that was read.
        batch_ms: duration of the last batch.
        tries: counts of its failed starts.
        reported: its last report; None: none yet.
        expiring: records that it needs and that retention removes.
        takeover: of the fragment from another node, until it is logged.
    """

    id: LaneId
    assigned: Deployed | None = None
    desired: Desired | None = None
    phase: LanePhase = field(default_factory=Stopped)
    run: RunNumber = NO_RUN
    life: NetworkLife | None = None
    epoch: Epoch = NO_EPOCH
    marker: CommitMarker | None = None
    batch_ms: int = 0
    tries: Tries = field(default_factory=Tries)
    reported: Reported | None = None
    expiring: Expiring = field(default_factory=Expiring)
    takeover: Takeover | None = None

    @property
    def target(self) -> Desired | None:
        """The desired state if it should run; None if it should not."""
        return self.desired if self.desired is not None and self.desired.running else None

    @property
    def is_active(self) -> bool:
        """Whether it runs, or is being started or stopped."""
        return isinstance(self.phase, Starting | Running | Stopping)

    @property
    def running(self) -> Running | None:
        """The facts of its query, if one runs, also while it stops."""
        match self.phase:
            case Running() as running:
                return running
            case Stopping(running=running):
                return running
            case _:
                return None

    @property
    def place(self) -> str:
        """The location in messages."""
        return f"fragment {self.id.fragment}"

    def moved(self, happening: Happening, phase: LanePhase) -> "Lane":
        """The lane in another phase, after a lifecycle event.

        Raises:
            BrokenInvariantError: the event is impossible in its phase, or leads elsewhere.
        """
        after = move(self.phase.phase, happening, self.place)
        if after is not phase.phase:
            message = f"{happening.value} leads to {after.value}, not to {phase.phase.value}"
            raise BrokenInvariantError(message, place=self.place)
        return replace(self, phase=phase)

    def with_running(self, running: Running) -> "Lane":
        """The lane with new facts of its query, which runs or is stopping."""
        if isinstance(self.phase, Stopping):
            return replace(self, phase=replace(self.phase, running=running))
        return replace(self, phase=running)


@dataclass(frozen=True, slots=True)
class Shared:
    """The state that the rules of all lanes read.

    Args:
        node: this node's name.
        participant: whose node it is.
        life: when the node was started, from its record in the catalog.
        most_fragments: how many lanes may run on this node at the same time; 0: any number.
        is_full: whether so many do, for the lane that the rules read it with.
        catalog_current: whether the catalog was read since its session was last in doubt.
        assigned: the fragments that the catalog assigns to this node.
        elsewhere: the fragments that other nodes of the participant run.
        leaving: the fragments that this node owns and that another one must run.
        plans: of the needed versions.
        ends: the last observed ends of topics; None: never observed.
        answered: whether, with this event, a server answers that did not before.
        topics: the topics whose ends are polled.
        derived: the inputs whose boundaries are read.
        rehearsed: what the node rehearses.
        moving_here: the fragments that users move to this node, with their transfer.
        standing_by: the fragments that the node follows as a secondary, or has followed and is to
            run now; each with whether a follower is begun.
        followed: what the node follows.
        known: all fragments that the catalog has.
        gone: those that it had when it was read before, and does not have any more.
        copied: how often the checkpoint of each fragment is copied that has passive standbys.
        last_run: the largest run number of the lanes that were removed.
    """

    node: NodeId
    participant: ParticipantId
    life: Millis
    most_fragments: int = 0
    is_full: bool = False
    catalog_current: bool = False
    assigned: Mapping[FragmentId, Deployed] = field(default_factory=dict)
    elsewhere: tuple[Deployed, ...] = ()
    leaving: Mapping[FragmentId, Leaving] = field(default_factory=dict)
    plans: Plans = field(default_factory=Plans)
    ends: Ends | None = None
    answered: bool = False
    topics: frozenset[TopicName] = frozenset()
    derived: frozenset[DerivedInput] = frozenset()
    rehearsed: Rehearse = field(default_factory=Rehearse)
    moving_here: tuple[tuple[Deployed, Transfer], ...] = ()
    standing_by: tuple[tuple[Deployed, bool], ...] = ()
    followed: tuple[Following, ...] = ()
    known: frozenset[FragmentId] = frozenset()
    gone: frozenset[FragmentId] = frozenset()
    copied: Mapping[FragmentId, int] = field(default_factory=dict)
    last_run: RunNumber = NO_RUN


@dataclass(frozen=True, slots=True)
class NodeState:
    """The complete state of an agent: its lanes, and what they share."""

    shared: Shared
    lanes: Mapping[LaneId, Lane] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether as many lanes run as may."""
        most = self.shared.most_fragments
        return 0 < most <= sum(lane.is_active for lane in self.lanes.values())


def first_state(record: NodeRecord) -> NodeState:
    """The state of an agent that has seen nothing yet; `record`: of its node."""
    return NodeState(
        Shared(
            record.node,
            record.participant,
            record.started_at_ms,
            most_fragments=record.most_fragments,
        )
    )
