"""Messages between partners, and what else happens to a participant. Plain data.

Every message names its contract and the number of the offer, which its sender counts: a late or
doubled message is recognised by them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from pipeline.contracts.load import Load, Task
from pipeline.contracts.portfolio import OfferNumber
from pipeline.contracts.terms import Contract, ContractId, PartyId, TaskId


class Offer(NamedTuple):
    """The buyer offers tasks at a price of a load unit."""

    contract: ContractId
    number: OfferNumber
    price: Decimal
    tasks: tuple[Task, ...]


class Answer(NamedTuple):
    """The seller takes these tasks, each at a price for it and those before it; none: refused."""

    contract: ContractId
    number: OfferNumber
    asks: tuple[tuple[TaskId, Decimal], ...]


class Move(NamedTuple):
    """The buyer asks the seller to run these tasks now, at this price; their loads are of now."""

    contract: ContractId
    number: OfferNumber
    price: Decimal
    tasks: tuple[Task, ...]


class Taken(NamedTuple):
    """The seller runs these tasks; none: nothing was moved. Repeated until confirmed."""

    contract: ContractId
    number: OfferNumber
    tasks: tuple[TaskId, ...]


class Confirmed(NamedTuple):
    """The buyer runs these tasks no more, and pays for them; others of the move are void."""

    contract: ContractId
    number: OfferNumber
    tasks: tuple[TaskId, ...]


class End(NamedTuple):
    """The buyer is to run these tasks again, or does already; either side sends it, repeatedly."""

    contract: ContractId
    number: OfferNumber
    tasks: tuple[TaskId, ...]


class Ended(NamedTuple):
    """Answer to `End`: it is done, or had been before."""

    contract: ContractId
    number: OfferNumber
    tasks: tuple[TaskId, ...]


Message = Offer | Answer | Move | Taken | Confirmed | End | Ended


class Received(NamedTuple):
    """A message of a partner, whose name the transport has verified."""

    sender: PartyId
    message: Message


class Tick(NamedTuple):
    """The time has come that the participant named."""


@dataclass(frozen=True, slots=True)
class LoadsChanged:
    """Tasks that run here, or were sent from here, have other loads now; absent ones have not."""

    loads: Mapping[TaskId, Load]


class TasksAdded(NamedTuple):
    """The participant has more tasks of its own."""

    tasks: tuple[Task, ...]


class TasksRemoved(NamedTuple):
    """Tasks of its own are no more; partners that run them are told to stop."""

    tasks: tuple[TaskId, ...]


class PartnerLost(NamedTuple):
    """A failure detector has found that a partner does not answer. Both sides find the same."""

    partner: PartyId


class ContractAgreed(NamedTuple):
    """A contract was agreed on, or its end has changed."""

    contract: Contract


Event = Received | Tick | LoadsChanged | TasksAdded | TasksRemoved | PartnerLost | ContractAgreed


class Outbound(NamedTuple):
    """A message to send."""

    to: PartyId
    message: Message
