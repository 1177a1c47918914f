"""State machine of a contract: states, events, and a transition table.

The diagram in `docs/federation/contracts.md` is made from `TRANSITIONS`.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from pipeline.errors import RefusedError


class State(Enum):
    """State of a contract."""

    ABSENT = "absent"
    """There is no document."""
    PROPOSED = "proposed"
    """One party has signed terms; the other one answers."""
    ACTIVE = "active"
    """Both have signed the same terms."""
    RENEWING = "renewing"
    """Active, and one party has proposed other terms."""
    CANCELLED = "cancelled"
    """Active until the notice is over."""
    ENDED = "ended"
    LAPSED = "lapsed"
    """The proposal was not answered in time."""
    WITHDRAWN = "withdrawn"
    """One of them has ended the negotiation."""


class Event(Enum):
    """Event of a contract."""

    PROPOSED = "proposed"
    COUNTERED = "countered"
    """The other party has proposed other terms instead."""
    ACCEPTED = "accepted"
    RENEWED = "renewal proposed"
    CANCELLED = "cancelled"
    LAPSED = "lapsed"
    """The time to answer a proposal is over."""
    EXPIRED = "expired"
    """The duration, or the notice, is over."""


TRANSITIONS: Mapping[tuple[State, Event], State] = MappingProxyType(
    {
        (State.ABSENT, Event.PROPOSED): State.PROPOSED,
        (State.PROPOSED, Event.COUNTERED): State.PROPOSED,
        (State.PROPOSED, Event.ACCEPTED): State.ACTIVE,
        (State.PROPOSED, Event.CANCELLED): State.WITHDRAWN,
        (State.PROPOSED, Event.LAPSED): State.LAPSED,
        (State.ACTIVE, Event.RENEWED): State.RENEWING,
        (State.ACTIVE, Event.CANCELLED): State.CANCELLED,
        (State.ACTIVE, Event.EXPIRED): State.ENDED,
        (State.RENEWING, Event.COUNTERED): State.RENEWING,
        (State.RENEWING, Event.ACCEPTED): State.ACTIVE,
        (State.RENEWING, Event.LAPSED): State.ACTIVE,
        (State.RENEWING, Event.CANCELLED): State.CANCELLED,
        (State.RENEWING, Event.EXPIRED): State.ENDED,
        (State.CANCELLED, Event.EXPIRED): State.ENDED,
    }
)

AGREED = frozenset({State.ACTIVE, State.RENEWING, State.CANCELLED})
"""The states in which load may move, within the duration of the terms."""
OPEN = frozenset({State.PROPOSED, State.RENEWING})
"""The states in which a proposal waits for its answer."""


def move(state: State, event: Event, place: str) -> State:
    """The state after an event; `place` names the contract.

    Raises:
        RefusedError: the event is not possible in this state; nothing is changed.
    """
    found = TRANSITIONS.get((state, event))
    if found is None:
        possible = ", ".join(e.value for s, e in TRANSITIONS if s is state)
        hint = f"it can be {possible}." if possible else "another contract needs another name."
        raise RefusedError(
            f"a contract that is {state.value} cannot be {event.value}", place=place, hint=hint
        )
    return found
