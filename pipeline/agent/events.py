"""The events of an agent. Lanes, polls and background work put them into its queue."""

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
    """A version of a network could not be read, or this program cannot plan it."""

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
    """An activity record of a writer of a derived topic: see `ActivityRecord`."""

    writer: Writer
    epoch: Epoch
    idle: bool


@dataclass(frozen=True, slots=True)
class EndsRead:
    """The end offsets of the input topics that answered.

    Args:
        read_at_ms: steady time just before the request: silence is measured up to then,
            however long the event waits in the queue.
        ends: last stable offsets; a topic that is missing could not be reached.
        written: log end offsets of the same topics; larger than `ends` where a
            transaction is open.
    """

    read_at_ms: SteadyMillis
    ends: Mapping[TopicName, Mapping[int, Offset]]
    written: Mapping[TopicName, Mapping[int, Offset]]


@dataclass(frozen=True, slots=True)
class Tick:
    """No event for a while; time has passed."""


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
