"""State of a participant. Plain data; nothing in it is changed in place."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, NamedTuple

from pipeline.contracts.costs import CostFunction
from pipeline.contracts.load import NO_LOAD, Load, Task
from pipeline.contracts.phases import Receiving, Sending
from pipeline.contracts.portfolio import OfferNumber, Portfolio
from pipeline.contracts.terms import Contract, ContractId, PartyId, TaskId
from pipeline.ids import Millis

NEVER: Final = Millis(1 << 62)
"""A time that does not come."""
ANY_TIME: Final = Millis(0)
"""A time that has come."""
NO_OFFER: Final = OfferNumber(0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a participant.

    Args:
        cost: its cost function.
        margin: what a decision has to gain per load unit at least; `Levels.margin` is one. It must
            not be 0: equal costs would move load to and fro.
        period_ms: how often it tries to sell, and compares the offers that have come.
        answer_ms: how long an offer waits for its answer, and a reservation for the move.
        retry_ms: first pause before a move, or an end, is sent again; each next one is twice as
            long, up to `skip_most_ms`.
        tries: how often these are sent before the partner counts as lost.
        patience_ms: how long it waits with an offer of little load; see `sending.wait_ms`.
        skip_first_ms: how long a partner that has refused is not asked; each next time is twice as
            long.
        skip_most_ms: the longest such time, also of a partner that did not answer or has broken the
            contract.
        passes_on: whether it sends tasks of others on to its partners.
    """

    cost: CostFunction
    margin: float
    period_ms: int = 1_000
    patience_ms: int = 40_000
    answer_ms: int = 3_000
    retry_ms: int = 500
    tries: int = 12
    skip_first_ms: int = 2_000
    skip_most_ms: int = 60_000
    passes_on: bool = True


class Buying(NamedTuple):
    """A contract under which this participant sends load.

    Args:
        contract: its terms.
        highest: the highest price as a float.
        lowest: the lowest price as a float.
        room: its limits.
        price: what the seller has asked last for one more task; first the lowest price.
        skip_until: before that, the seller is not asked.
        failures: refusals in a row.
        broken: whether the last of them was none: no answer in time, or a wrong one.
    """

    contract: Contract
    highest: float
    lowest: float
    room: Load
    price: float
    skip_until: Millis = ANY_TIME
    failures: int = 0
    broken: bool = False


class Incoming(NamedTuple):
    """The offer that a receiver deals with, of a contract.

    Args:
        phase: how far it is.
        number: of the offer.
        price: that was offered, then that of the move.
        tasks: offered, then accepted, then taken.
        due_ms: when it lapses, or when `Taken` is sent again.
        tries: how often that was sent.
    """

    phase: Receiving
    number: OfferNumber
    price: Decimal
    tasks: tuple[Task, ...]
    due_ms: Millis
    tries: int = 0


class Selling(NamedTuple):
    """A contract under which this participant runs load.

    Args:
        contract: its terms.
        highest: the highest price as a float.
        room: its limits.
        newest: the highest number of an offer that has come.
    """

    contract: Contract
    highest: float
    room: Load
    newest: OfferNumber = NO_OFFER


class Outgoing(NamedTuple):
    """The offer or move of a sender.

    Args:
        phase: how far it is; never idle.
        contract: under which.
        number: of the offer.
        price: offered, then that of the move.
        tasks: offered, then moving.
        offered: number of tasks that were offered.
        due_ms: when it lapses, or when `Move` is sent again.
        tries: how often that was sent.
    """

    phase: Sending
    contract: ContractId
    number: OfferNumber
    price: Decimal
    tasks: tuple[TaskId, ...]
    offered: int
    due_ms: Millis
    tries: int = 0


class Ending(NamedTuple):
    """Tasks whose stay ends: sent again until the other side answers.

    Args:
        partner: the other side.
        contract: under which they moved.
        number: of the offer.
        tasks: that end.
        is_buyer: whether this participant is the buyer, so that it runs them already.
        due_ms: when `End` is sent again.
        tries: how often it was sent.
    """

    partner: PartyId
    contract: ContractId
    number: OfferNumber
    tasks: tuple[TaskId, ...]
    is_buyer: bool
    due_ms: Millis
    tries: int = 0


class Participant(NamedTuple):
    """A participant.

    Args:
        me: its name.
        settings: how it decides.
        portfolio: its tasks.
        buying: the contracts under which it sends load.
        selling: the contracts under which it runs load.
        incoming: the offers in progress, of those contracts.
        outgoing: its offer or move; None: idle.
        endings: stays that end.
        newest: number of its last offer.
        offer_at: when it tries to sell next.
        since_ms: since when it has waited to sell.
        ends_ms: when the next of its contracts ends.
        changed: whether loads have changed since it was last decided what should end.
    """

    me: PartyId
    settings: Settings
    portfolio: Portfolio = Portfolio()
    buying: Mapping[ContractId, Buying] = {}
    selling: Mapping[ContractId, Selling] = {}
    incoming: Mapping[ContractId, Incoming] = {}
    outgoing: Outgoing | None = None
    endings: tuple[Ending, ...] = ()
    newest: OfferNumber = NO_OFFER
    offer_at: Millis = ANY_TIME
    since_ms: Millis = ANY_TIME
    ends_ms: Millis = NEVER
    changed: bool = False

    @property
    def reserved(self) -> Load:
        """The load of tasks that it has accepted and that have not come yet."""
        found = NO_LOAD
        for incoming in self.incoming.values():
            if incoming.phase is Receiving.RESERVED:
                for task in incoming.tasks:
                    found = found.plus(task.load)
        return found
