"""What an agent knows: plain values, made anew by `decide`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pipeline.agent.plans import Plans
from pipeline.boundaries.lane_time import Ends, LaneTime, Writers
from pipeline.boundaries.profile import DerivedInput
from pipeline.catalog.records import Begun, FragmentStatus
from pipeline.catalog.snapshot import Deployed
from pipeline.errors import BrokenInvariantError
from pipeline.ids import (
    NO_EPOCH,
    NO_RUN,
    Epoch,
    FragmentId,
    Incarnation,
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
from pipeline.lanes.lifecycle import Happening, Phase, move
from pipeline.lanes.start.facts import StateChoice
from pipeline.markers.commit_marker import CommitMarker
from pipeline.planner.plan import Fragment


@dataclass(frozen=True, slots=True)
class Desired:
    """What the catalog wants of a fragment on this node.

    A lane that was started for one value is not the lane that another value wants.

    Args:
        fragment: which fragment.
        life: of its network.
        version: the version of the network that last changed the fragment or its topics.
        digest: of the fragment's plan, as deployed.
        running: whether it is to run.
        choice: what was chosen for its state; None: nothing.
        topic_ids: the ids of its topics at its last deploy.
        begins: where it begins to read what it has never read, as deploys have decided.
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
    """What the catalog wants of a fragment that is assigned to this node."""
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
class EndsSeen:
    """Where an input's topic ended at a steady time, from which the age of a record follows."""

    at_ms: SteadyMillis
    ends: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """How far the rebuild of a lane's state is, begun at a steady time; as in `LaneRebuilding`."""

    since_ms: SteadyMillis
    offsets: int
    read: int


# --- phases: each has the facts that exist in it; times are steady ------------------------------


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing runs and nothing is under way."""

    phase: ClassVar = Phase.STOPPED


@dataclass(frozen=True, slots=True)
class Starting:
    """Asked to start; neither started nor failed yet.

    Args:
        desired: what the start is to bring about.
        deployed: the fragment as it was when the start was decided.
        fragment: its plan; None: the start waits for it.
        rebuilding: how far it is, if it builds the state from the log.
    """

    phase: ClassVar = Phase.STARTING
    desired: Desired
    deployed: Deployed
    fragment: Fragment | None
    rebuilding: Rebuilding | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """Its query runs.

    Args:
        desired: what its start was to bring about.
        fragment: the plan that it runs.
        incarnation: its life.
        time: its event time.
        since_ms: when it began to run.
        read_at_ms: when the marker that it began with was written: what it had not read then can
            have waited since.
        ends_log: per input, older answers about its end that are not all finished, oldest first.
        said_idle_at_ms: when its readers were last told that it is idle, or may have been, by the
            lane before it; None: they have been told that it is not.
        promised: what it was last told of the promises of its inputs' writers.
        kept_ms: what it was last told of the retention of dead letters; None: nothing.
    """

    phase: ClassVar = Phase.RUNNING
    desired: Desired
    fragment: Fragment
    incarnation: Incarnation
    time: LaneTime
    since_ms: SteadyMillis
    read_at_ms: SteadyMillis
    ends_log: Mapping[StreamName, tuple[EndsSeen, ...]] = field(default_factory=dict)
    said_idle_at_ms: SteadyMillis | None = None
    promised: Mapping[StreamName, Millis] = field(default_factory=dict)
    kept_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Stopping:
    """Asked to stop; its current batch ends first. `running`: None if it had not started."""

    phase: ClassVar = Phase.STOPPING
    start: Starting | None
    running: Running | None


@dataclass(frozen=True, slots=True)
class BackingOff:
    """It failed and waits for its next try, until `retry_at_ms`."""

    phase: ClassVar = Phase.BACKING_OFF
    retry_at_ms: SteadyMillis


@dataclass(frozen=True, slots=True)
class Fenced:
    """Another epoch owned the fragment: the catalog has to say whether it is ours again."""

    phase: ClassVar = Phase.FENCED


@dataclass(frozen=True, slots=True)
class Failed:
    """Given up until something else is wanted of it."""

    phase: ClassVar = Phase.FAILED


LanePhase = Stopped | Starting | Running | Stopping | BackingOff | Fenced | Failed


@dataclass(frozen=True, slots=True)
class Tries:
    """How the starts of a lane have gone.

    Args:
        failures: in a row, without five minutes of success in between; external ones aside.
        waits: external failures in a row, without success or another failure in between.
        restarts: since this agent began, not counting those that a deploy asked for.
        last_error: one line; stays until something else is wanted.
    """

    failures: int = 0
    waits: int = 0
    restarts: int = 0
    last_error: str = ""


@dataclass(frozen=True, slots=True)
class Reported:
    """What was last reported of a lane, and when (steady time)."""

    status: FragmentStatus
    at_ms: SteadyMillis


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane as this node sees it.

    Args:
        id: which one.
        assigned: its fragment, if the catalog assigns it to this node; None: not any more.
        desired: what the catalog wants of that.
        phase: where it stands, with the facts of that.
        run: the number of its last start.
        life: of its network, at its last start; None: it was never started.
        epoch: of the last start that got that far.
        marker: its last known commit marker.
        batch_ms: how long the last batch took.
        tries: how its starts have gone.
        reported: what was last reported of it; None: nothing.
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

    @property
    def wanted(self) -> Desired | None:
        """What should run; None when nothing should."""
        return self.desired if self.desired is not None and self.desired.running else None

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
        """Names it in messages."""
        return f"fragment {self.id.fragment}"

    def moved(self, happening: Happening, phase: LanePhase) -> "Lane":
        """The lane in another phase, after something happened to it.

        Raises:
            BrokenInvariantError: that cannot happen in its phase, or leads elsewhere.
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
    """What the rules of all lanes see.

    Args:
        node: this node's name.
        participant: whose node it is.
        life: when the node was started, as its record in the catalog says.
        catalog_known: whether the catalog was read since its session was last in doubt.
        assigned: the fragments that the catalog assigns to this node.
        elsewhere: the fragments that other nodes of the participant run.
        plans: of the versions that are needed.
        ends: where topics ended when that was last asked; None: never yet.
        ends_before: the answer before that.
        answered: whether, with this event, a server answers that did not before.
        topics: the topics whose ends are asked.
        derived: the inputs whose boundaries are read.
        writers: boundaries read so far, for lanes that start later; of exactly the writers whose
            boundaries are read.
        rehearsed: the fragments that the node rehearses.
        last_run: the largest number of a run of a lane that is not kept any more.
    """

    node: NodeId
    participant: ParticipantId
    life: Millis
    catalog_known: bool = False
    assigned: Mapping[FragmentId, Deployed] = field(default_factory=dict)
    elsewhere: tuple[Deployed, ...] = ()
    plans: Plans = field(default_factory=Plans)
    ends: Ends | None = None
    ends_before: Ends | None = None
    answered: bool = False
    topics: frozenset[TopicName] = frozenset()
    derived: frozenset[DerivedInput] = frozenset()
    writers: Writers = field(default_factory=dict)
    rehearsed: tuple[tuple[Deployed, Fragment], ...] = ()
    last_run: RunNumber = NO_RUN


@dataclass(frozen=True, slots=True)
class NodeState:
    """Everything that an agent decides by: its lanes, and what they share."""

    shared: Shared
    lanes: Mapping[LaneId, Lane] = field(default_factory=dict)

    def with_lane(self, lane: Lane) -> "NodeState":
        """The state with one lane replaced."""
        return replace(self, lanes={**self.lanes, lane.id: lane})
