"""What a rule is, and what several of them need."""

from collections.abc import Callable
from typing import TypeAlias

from pipeline.agent.effects import Effect
from pipeline.agent.events import Event
from pipeline.agent.now import Now
from pipeline.agent.state import Lane, NodeState, Shared

Effects: TypeAlias = tuple[Effect, ...]
LaneRule: TypeAlias = Callable[[Lane, Shared, Event, Now], tuple[Lane, Effects]]
"""(lane, shared state, event, now) → the new lane, and the effects to perform."""
NodeRule: TypeAlias = Callable[[NodeState, Event], tuple[NodeState, Effects]]
"""(state, event) → the new state, and the effects to perform."""
