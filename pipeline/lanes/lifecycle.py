"""The phases of a lane as its agent sees them: a table, so that an illegal step cannot happen.

The diagram in `docs/lane-states.md` is made from `TRANSITIONS`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from pipeline.errors import BrokenInvariantError


class Phase(Enum):
    """Where a lane stands."""

    STOPPED = "stopped"
    """Nothing runs and nothing is under way."""
    STARTING = "starting"
    """Asked to start; neither started nor failed yet."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Asked to stop; its current batch ends first."""
    BACKING_OFF = "backing off"
    """It failed and waits for its next try."""
    FENCED = "fenced"
    """Another epoch owned the fragment: only the catalog can say whether it is ours again."""
    FAILED = "failed"
    """Given up until something else is wanted of it."""


class Happening(Enum):
    """What can happen to a lane."""

    START_ASKED = "start asked"
    STARTED = "started"
    STOP_ASKED = "stop asked"
    ENDED = "ended"
    """It ended after it was asked to stop, with or without an error."""
    CRASHED = "crashed"
    """It ended unasked; another try can help."""
    FENCED = "fenced"
    GAVE_UP = "gave up"
    """It ended unasked; another try cannot help, or there were too many."""
    READMITTED = "readmitted"
    """The catalog, read after the fencing, still wants it here."""
    RESET = "reset"
    """Something else is wanted of it, so earlier failures count no more."""


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
        # A start that was under way may finish before the stop reaches it.
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
    """The phase after something happened; `place` names the fragment.

    Raises:
        BrokenInvariantError: that cannot happen in this phase; nothing is changed.
    """
    found = TRANSITIONS.get((phase, happening))
    if found is None:
        message = f"a lane that is {phase.value} cannot have {happening.value}"
        raise BrokenInvariantError(message, place=place)
    return found
