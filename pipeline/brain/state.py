"""What a node's agent knows: plain values, made anew by `decide`."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pipeline.boundaries.lane_time import Ends, LaneTime, Writers
from pipeline.brain.events import Desired
from pipeline.catalog.records import FragmentStatus
from pipeline.ids import (
    NO_EPOCH,
    Epoch,
    Incarnation,
    Millis,
    NodeId,
    Offset,
    SteadyMillis,
    StreamName,
)
from pipeline.lanes.events import FragmentId
from pipeline.lanes.lifecycle import Happening, Phase, move
from pipeline.lanes.markers import CommitMarker


@dataclass(frozen=True, slots=True)
class EndsSeen:
    """Where an input's topic ended at a steady time; kept to tell how old a record can be."""

    at_ms: SteadyMillis
    ends: Mapping[int, Offset]


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """How far the rebuild of a lane's state is, begun at a steady time; the rest is as told."""

    since_ms: SteadyMillis
    offsets: int
    read: int


@dataclass(frozen=True, slots=True)
class Lane:
    """One fragment's stable lane, as this node sees it; its times are steady.

    Args:
        fragment: which fragment.
        desired: what the catalog last wanted of it here; None: nothing any more.
        started: what the last start was asked for.
        phase: where it stands.
        epoch: of the last start that got that far.
        incarnation: of the running lane.
        time: event time of the running lane.
        marker: its last known commit marker.
        rebuilding: how far it is, if the start that is under way builds the state from the log.
        read_at_ms: when the marker that it began with was written: what it had not read then can
            have waited since.
        running_since_ms: when it last began to run.
        retry_at_ms: when a lane that is backing off may start.
        failures: in a row, without five minutes of success in between; external ones aside.
        waits: external failures in a row, without success or another failure in between.
        restarts: since this agent began, not counting those that a deploy asked for.
        last_error: one line; stays until something else is wanted.
        batch_ms: how long the last batch took.
        ends_log: per input, older answers about its end that are not all finished, oldest first.
        said_idle_at_ms: when its readers were last told that it is idle, or may have been, by the
            lane before it; None: they know that it is not.
        promised: what it was last told of the promises of its inputs' writers.
        published: what was last reported.
        published_at_ms: when that was.
    """

    fragment: FragmentId
    desired: Desired | None = None
    started: Desired | None = None
    phase: Phase = Phase.STOPPED
    epoch: Epoch = NO_EPOCH
    incarnation: Incarnation | None = None
    time: LaneTime | None = None
    marker: CommitMarker | None = None
    rebuilding: Rebuilding | None = None
    read_at_ms: SteadyMillis | None = None
    running_since_ms: SteadyMillis | None = None
    retry_at_ms: SteadyMillis | None = None
    failures: int = 0
    waits: int = 0
    restarts: int = 0
    last_error: str = ""
    batch_ms: int = 0
    ends_log: Mapping[StreamName, tuple[EndsSeen, ...]] = field(default_factory=dict)
    said_idle_at_ms: SteadyMillis | None = None
    promised: Mapping[StreamName, Millis] = field(default_factory=dict)
    published: FragmentStatus | None = None
    published_at_ms: SteadyMillis | None = None

    @property
    def wanted(self) -> Desired | None:
        """What should run; None when nothing should."""
        return self.desired if self.desired is not None and self.desired.running else None

    @property
    def place(self) -> str:
        """The lane's name in messages."""
        return f"fragment {self.fragment.network}.{self.fragment.fragment}"

    def moved(self, happening: Happening) -> "Lane":
        """The lane after something happened to it.

        Raises:
            BrokenInvariantError: that cannot happen in its phase.
        """
        return replace(self, phase=move(self.phase, happening, self.place))


@dataclass(frozen=True, slots=True)
class NodeState:
    """Everything that an agent decides by.

    Args:
        node: this node's name.
        lanes: every lane that is wanted here or still has to stop.
        catalog_known: whether the catalog was read since its session was last in doubt.
        ends: where topics ended when that was last asked.
        writers: boundaries read so far, for lanes that start later; of exactly the writers whose
            boundaries are watched.
    """

    node: NodeId
    lanes: Mapping[FragmentId, Lane] = field(default_factory=dict)
    catalog_known: bool = False
    ends: Ends | None = None
    writers: Writers = field(default_factory=dict)

    def with_lane(self, lane: Lane) -> "NodeState":
        """The state with one lane replaced."""
        return replace(self, lanes={**self.lanes, lane.fragment: lane})
