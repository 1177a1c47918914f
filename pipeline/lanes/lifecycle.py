"""State machine of a lane in its agent: phases, events, and a transition table.

The diagram in `docs/lane-states.md` is made from `TRANSITIONS`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from pipeline.errors import BrokenInvariantError


class Phase(Enum):
    """Phase of a lane."""

    STOPPED = "stopped"
    """Not running, no start or stop in progress."""
    STARTING = "starting"
    """Start requested; neither started nor failed yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Stop requested; its current batch ends first."""
    BACKING_OFF = "backing off"
    """Failed; waits for its next try."""
    FENCED = "fenced"
    """Another epoch owned the fragment: only the catalog decides who owns it now."""
    FAILED = "failed"
    """Given up until its desired state changes."""


class Happening(Enum):
    """Event of a lane."""

    START_ASKED = "start asked"
    STARTED = "started"
    STOP_ASKED = "stop asked"
    ENDED = "ended"
    """Ended after a stop request, with or without an error."""
    CRASHED = "crashed"
    """Ended without a stop request; another try can help."""
    FENCED = "fenced"
    GAVE_UP = "gave up"
    """Ended without a stop request; another try cannot help, or there were too many."""
    READMITTED = "readmitted"
    """The catalog, read after the fencing, still assigns it to this node."""
    RESET = "reset"
    """Its desired state changed, so earlier failures no longer count."""


TRANSITIONS: Mapping[tuple[Phase, Happening], Phase] = MappingProxyType(
    {
        (Phase.STOPPED, Happening.START_ASKED): Phase.STARTING,
        (Phase.STARTING, Happening.STARTED): Phase.RUNNING,
        (Phase.STARTING, Happening.STOP_ASKED): Phase.STOPPING,
        (Phase.STARTING, Happening.CRASHED): Phase.BACKING_OFF,
        (Phase.STARTING, Happening.FENCED): Phase.FENCED,
        (Phase.STARTING, Happening.GAVE_UP): Phase.FAILED,
        (Phase.RUNNING, Happening.STOP_ASKED): Phase.STOPPING,
        (Phase.RUNNING, Happening.CRASHED): Phase.BACKING_OFF,
        (Phase.RUNNING, Happening.FENCED): Phase.FENCED,
        (Phase.RUNNING, Happening.GAVE_UP): Phase.FAILED,
        # A start in progress may finish before the stop reaches it.
        (Phase.STOPPING, Happening.STARTED): Phase.STOPPING,
        (Phase.STOPPING, Happening.ENDED): Phase.STOPPED,
        (Phase.STOPPING, Happening.FENCED): Phase.FENCED,
        (Phase.BACKING_OFF, Happening.START_ASKED): Phase.STARTING,
        (Phase.BACKING_OFF, Happening.RESET): Phase.STOPPED,
        (Phase.FENCED, Happening.READMITTED): Phase.BACKING_OFF,
        (Phase.FENCED, Happening.RESET): Phase.STOPPED,
        (Phase.FAILED, Happening.RESET): Phase.STOPPED,
    }
)


def move(phase: Phase, happening: Happening, place: str) -> Phase:
    """The phase after an event; `place` names the fragment.

    Raises:
        BrokenInvariantError: the event is illegal in this phase; nothing is changed.
    """
    found = TRANSITIONS.get((phase, happening))
    if found is None:
        message = f"a lane that is {phase.value} cannot have {happening.value}"
        raise BrokenInvariantError(message, place=place)
    return found
