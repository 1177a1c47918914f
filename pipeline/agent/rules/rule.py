"""What a rule is, and what several of them need."""

from collections.abc import Callable
from typing import TypeAlias

from pipeline.agent.effects import Effect
from pipeline.agent.events import (
    ActivityRead,
    BoundaryRead,
    CatalogLost,
    CatalogRead,
    EndsRead,
    Event,
    PlanFailed,
    PlanMade,
    Tick,
)
from pipeline.agent.now import Now
from pipeline.agent.state import Lane, NodeState, Running, Shared
from pipeline.boundaries.lane_time import writer_of
from pipeline.boundaries.profile import DerivedInput
from pipeline.lanes.events import BatchFinished, LaneRebuilding, LaneStarted, LaneStopped

Effects: TypeAlias = tuple[Effect, ...]
LaneRule: TypeAlias = Callable[[Lane, Shared, Event, Now], tuple[Lane, Effects]]
"""(lane, shared state, event, now) → the new lane, and the effects to perform."""
NodeRule: TypeAlias = Callable[[NodeState, Event], tuple[NodeState, Effects]]
"""(state, event) → the new state, and the effects to perform."""


def running_if_moved(lane: Lane, event: Event) -> Running | None:
    """The facts of a lane that runs, if an event can move its event time; else None."""
    phase = lane.phase
    return phase if isinstance(phase, Running) and _concerns(event, lane, phase) else None


def _concerns(event: Event, lane: Lane, running: Running) -> bool:
    match event:
        case BatchFinished(lane=of) | LaneStarted(lane=of):
            return of == lane.id
        case BoundaryRead(writer) | ActivityRead(writer):
            return any(
                isinstance(lane_input, DerivedInput) and writer_of(lane_input) == writer
                for lane_input in running.time.profile.inputs
            )
        case EndsRead() | Tick():
            return True
        case CatalogRead() | CatalogLost() | PlanMade() | PlanFailed():
            return False
        case LaneRebuilding() | LaneStopped():
            return False
