"""What a node's loop is told, and what it does about it.

The loop polls, decides in pure code and performs: lanes, the catalog and Kafka put events into its
queue; `pipeline/brain/decide.py` turns (state, event) into (state, effects); `perform.py` carries
them out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.boundaries.lane_time import Writer
from pipeline.catalog.records import Begun
from pipeline.ids import (
    Epoch,
    Incarnation,
    Millis,
    NetworkLife,
    NetworkVersion,
    Offset,
    SteadyMillis,
    StreamName,
    TopicName,
)
from pipeline.lanes.events import (
    BatchFinished,
    FragmentId,
    LaneRebuilding,
    LaneStarted,
    LaneStopped,
)
from pipeline.lanes.start import StateChoice


@dataclass(frozen=True, slots=True)
class Desired:
    """One fragment that the catalog assigns to this node, and what is wanted of it.

    A lane that was started for one value is not the lane that another value wants.

    Args:
        fragment: which fragment.
        life: of its network.
        version: the version of the network that last changed the fragment or its topics.
        digest: of the fragment's plan, as deployed.
        running: whether it is to run.
        choice: what the user chose for its state; None: nothing.
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


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CatalogRead:
    """The catalog was read in full: everything that should run here."""

    desired: tuple[Desired, ...]


@dataclass(frozen=True, slots=True)
class CatalogLost:
    """The ZooKeeper session is suspended: decide nothing new until `CatalogRead`."""


@dataclass(frozen=True, slots=True)
class BoundariesWatched:
    """Whose boundaries are read from now on, from the beginning of their topics.

    What is known of other writers, among them those of deleted topics, is not needed any more.
    """

    writers: frozenset[Writer]


@dataclass(frozen=True, slots=True)
class BoundaryRead:
    """A boundary record of a writer of a derived topic."""

    writer: Writer
    epoch: Epoch
    boundary_ms: Millis
    positions: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class ActivityRead:
    """What a writer of a derived topic says of itself: see `ActivityRecord`."""

    writer: Writer
    epoch: Epoch
    idle: bool


@dataclass(frozen=True, slots=True)
class EndsRead:
    """Where the input topics end now, for the topics that answered.

    Args:
        read_at_ms: steady time just before they were asked: silence is measured up to then,
            however long the event waits in line.
        ends: last stable offsets; a topic that is missing could not be reached.
        written: the next offsets to be written, of the same topics; they lie behind `ends` where a
            transaction is open.
    """

    read_at_ms: SteadyMillis
    ends: Mapping[TopicName, Mapping[int, Offset]]
    written: Mapping[TopicName, Mapping[int, Offset]]


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing happened for a while; time went on."""


Event = (
    CatalogRead
    | CatalogLost
    | LaneRebuilding
    | LaneStarted
    | BatchFinished
    | LaneStopped
    | BoundariesWatched
    | BoundaryRead
    | ActivityRead
    | EndsRead
    | Tick
)

# --- effects ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartLane:
    """Claim the fragment and start its stable lane."""

    fragment: FragmentId
    life: NetworkLife
    version: NetworkVersion


@dataclass(frozen=True, slots=True)
class StopLane:
    """Let the current batch finish, then stop the lane's query.

    It may reach a lane that is still starting: then the start is given up, or the effect comes a
    second time when the lane has started. Either way a `LaneStopped` follows.
    """

    fragment: FragmentId


@dataclass(frozen=True, slots=True)
class SendAdvance:
    """Tell one incarnation of a lane that event time may move to `advance_ms`."""

    fragment: FragmentId
    incarnation: Incarnation
    advance_ms: Millis


@dataclass(frozen=True, slots=True)
class SayActivity:
    """Tell the readers of a fragment's output whether the lane is idle: see `ActivityRecord`."""

    fragment: FragmentId
    epoch: Epoch
    idle: bool


@dataclass(frozen=True, slots=True)
class NotePromises:
    """Tell a running lane what the writers of its derived inputs have promised.

    `promised`: the boundaries that its finished batches cover, by stream.
    """

    fragment: FragmentId
    promised: Mapping[StreamName, Millis]


@dataclass(frozen=True, slots=True)
class PublishStatus:
    """Write what is seen of a fragment into the catalog."""

    fragment: FragmentId


Effect = StartLane | StopLane | SendAdvance | SayActivity | NotePromises | PublishStatus
