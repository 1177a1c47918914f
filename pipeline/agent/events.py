"""The events of an agent. Lanes, polls and background work put them into its queue."""

from dataclasses import dataclass

from pipeline.agent.takeover import Takeover
from pipeline.boundaries.ends import Ends
from pipeline.catalog.snapshot import CatalogSnapshot, VersionId
from pipeline.errors import MedusaError
from pipeline.ids import LaneId, RunNumber
from pipeline.lanes.events import (
    BatchFinished,
    LaneRebuilding,
    LaneStarted,
    LaneStopped,
    LaneTentative,
    LaneTimed,
    LaneWaited,
)
from pipeline.lanes.expiring import ExpiringRecords
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
class EndsRead:
    """The end offsets of the input topics that answered."""

    ends: Ends


@dataclass(frozen=True, slots=True)
class ExpiringFound:
    """The records that a lane needs and that retention removes soon, or has removed."""

    lane: LaneId
    found: tuple[ExpiringRecords, ...]


@dataclass(frozen=True, slots=True)
class FragmentTaken:
    """A run of a lane has claimed a fragment that another node has owned; precedes its others."""

    lane: LaneId
    run: RunNumber
    takeover: Takeover


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
    | LaneTimed
    | LaneWaited
    | LaneTentative
    | BatchFinished
    | LaneStopped
    | EndsRead
    | ExpiringFound
    | FragmentTaken
    | Tick
)
