"""Protocols of an offer and of the tasks that it moves, as transition tables. Pure.

The diagrams in `docs/federation/protocol.md` are made from the tables.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

from pipeline.errors import BrokenInvariantError


class Sending(Enum):
    """Phase of a sender; it has one offer or move at a time."""

    IDLE = "idle"
    OFFERED = "offered"
    """It waits for the answer to an offer."""
    MOVING = "moving"
    """It has asked the receiver to take tasks, and runs them until the receiver has."""


class SendingEvent(Enum):
    """Event of a sender."""

    OFFER = "offer"
    """Tasks cost more than the price of a partner."""
    ACCEPTED = "accepted"
    """The receiver takes at least one task at a price that pays."""
    REFUSED = "refused"
    """It takes none, or asks more than pays."""
    TAKEN = "taken"
    """It runs at least one of them."""
    DECLINED = "declined"
    """Its load has changed meanwhile: it takes none."""
    LAPSED = "lapsed"
    """No answer came in time."""


class Receiving(Enum):
    """Phase of a receiver, for one contract."""

    FREE = "free"
    WAITING = "waiting"
    """An offer waits for the next time at which offers are compared."""
    RESERVED = "reserved"
    """Tasks were accepted, and count as load until they come or the offer lapses."""
    TAKEN = "taken"
    """Tasks run here, and the sender has not confirmed yet: nothing is owed for them."""


class ReceivingEvent(Enum):
    """Event of a receiver."""

    OFFERED = "offered"
    """An offer with a higher number than any before."""
    ACCEPTED = "accepted"
    REFUSED = "refused"
    MOVED = "moved"
    """The sender asked to take tasks, and at least one still pays."""
    DECLINED = "declined"
    """None pays any more."""
    LAPSED = "lapsed"
    CONFIRMED = "confirmed"
    """The sender runs them no more: from now on they are paid for."""
    VOIDED = "voided"
    """The sender had given up waiting, and runs them itself."""


class Stay(Enum):
    """Phase of a task that a partner runs."""

    RUNNING = "running"
    ENDING = "ending"
    """Both run it, until both know that the partner need not."""
    ENDED = "ended"


class StayEvent(Enum):
    """Event of a task that a partner runs."""

    RETURNED = "returned"
    """The partner gives it back: its load has risen, the contract ends, or it is overloaded."""
    RECALLED = "recalled"
    """The sender takes it back: its load has fallen, or the contract ends."""
    ENDED = "ended"
    """The other side has confirmed."""
    LOST = "lost"
    """The partner does not answer: the sender runs it again, the partner drops it."""


SENDING: Final[Mapping[tuple[Sending, SendingEvent], Sending]] = MappingProxyType(
    {
        (Sending.IDLE, SendingEvent.OFFER): Sending.OFFERED,
        (Sending.OFFERED, SendingEvent.ACCEPTED): Sending.MOVING,
        (Sending.OFFERED, SendingEvent.REFUSED): Sending.IDLE,
        (Sending.OFFERED, SendingEvent.LAPSED): Sending.IDLE,
        (Sending.MOVING, SendingEvent.TAKEN): Sending.IDLE,
        (Sending.MOVING, SendingEvent.DECLINED): Sending.IDLE,
        (Sending.MOVING, SendingEvent.LAPSED): Sending.IDLE,
    }
)
RECEIVING: Final[Mapping[tuple[Receiving, ReceivingEvent], Receiving]] = MappingProxyType(
    {
        (Receiving.FREE, ReceivingEvent.OFFERED): Receiving.WAITING,
        (Receiving.WAITING, ReceivingEvent.OFFERED): Receiving.WAITING,
        (Receiving.WAITING, ReceivingEvent.ACCEPTED): Receiving.RESERVED,
        (Receiving.WAITING, ReceivingEvent.REFUSED): Receiving.FREE,
        (Receiving.RESERVED, ReceivingEvent.OFFERED): Receiving.WAITING,
        (Receiving.RESERVED, ReceivingEvent.MOVED): Receiving.TAKEN,
        (Receiving.RESERVED, ReceivingEvent.DECLINED): Receiving.FREE,
        (Receiving.RESERVED, ReceivingEvent.LAPSED): Receiving.FREE,
        (Receiving.TAKEN, ReceivingEvent.CONFIRMED): Receiving.FREE,
        (Receiving.TAKEN, ReceivingEvent.VOIDED): Receiving.FREE,
        (Receiving.TAKEN, ReceivingEvent.LAPSED): Receiving.FREE,
    }
)
STAY: Final[Mapping[tuple[Stay, StayEvent], Stay]] = MappingProxyType(
    {
        (Stay.RUNNING, StayEvent.RETURNED): Stay.ENDING,
        (Stay.RUNNING, StayEvent.RECALLED): Stay.ENDING,
        (Stay.RUNNING, StayEvent.LOST): Stay.ENDED,
        (Stay.ENDING, StayEvent.ENDED): Stay.ENDED,
        (Stay.ENDING, StayEvent.LOST): Stay.ENDED,
    }
)

P = TypeVar("P", bound=Enum)
E = TypeVar("E", bound=Enum)


def after(table: Mapping[tuple[P, E], P], phase: P, event: E) -> P:
    """The phase after an event.

    Raises:
        BrokenInvariantError: the event is illegal in this phase.
    """
    found = table.get((phase, event))
    if found is None:
        raise BrokenInvariantError(
            f"{type(phase).__name__} that is {phase.value} cannot have {event.value}",
            place="contract",
        )
    return found


def diagram(table: Mapping[tuple[P, E], P], first: P) -> str:
    """A table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", f"    [*] --> {first.value}"]
    for (before, event), then in table.items():
        lines.append(f"    {before.value} --> {then.value}: {event.value}")
    return "\n".join(lines)
