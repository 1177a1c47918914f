"""What an agent is told. Lanes, polls and background work put events into its queue."""

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.boundaries.lane_time import Writer
from pipeline.catalog.snapshot import CatalogSnapshot, VersionId
from pipeline.errors import MedusaError
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis, TopicName
from pipeline.lanes.events import BatchFinished, LaneRebuilding, LaneStarted, LaneStopped
from pipeline.planner.plan import Plan


@dataclass(frozen=True, slots=True)
class CatalogRead:
    """The catalog was read in full."""

    snapshot: CatalogSnapshot


@dataclass(frozen=True, slots=True)
class CatalogLost:
    """The ZooKeeper session is suspended: decide nothing new until `CatalogRead`."""


@dataclass(frozen=True, slots=True)
class PlanMade:
    """A version of a network was read and planned."""

    version: VersionId
    plan: Plan


@dataclass(frozen=True, slots=True)
class PlanFailed:
    """A version of a network could not be read, or not be planned by this program."""

    version: VersionId
    error: MedusaError


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
    | PlanMade
    | PlanFailed
    | LaneRebuilding
    | LaneStarted
    | BatchFinished
    | LaneStopped
    | BoundaryRead
    | ActivityRead
    | EndsRead
    | Tick
)
