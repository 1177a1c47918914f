"""Reasons of decisions, as data: prices, costs, and what else could have been chosen."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from pipeline.contracts.state import Buying
from pipeline.contracts.terms import ContractId, PartyId, TaskId
from pipeline.ids import Millis


class What(StrEnum):
    """What was decided."""

    OFFERED = "offered"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    MOVING = "moving"
    TAKEN = "taken"
    DECLINED = "declined"
    SENT = "sent"
    VOIDED = "voided"
    LAPSED = "lapsed"
    RETURNED = "returned"
    RECALLED = "recalled"
    LOST = "lost"
    BROKEN = "broken"


_SENTENCES: Mapping[What, str] = {
    What.OFFERED: "{me} offers {tasks} to {partner} for {price}: here they cost {costs}",
    What.ACCEPTED: "{me} would take {tasks} of {partner} for up to {price}: here they cost {costs}",
    What.REFUSED: "{me} takes none of {tasks} that {partner} offers for {price}: {why}",
    What.WITHDRAWN: "{me} moves nothing to {partner}: {why}",
    What.MOVING: "{me} sends {tasks} to {partner} for {price}: here they cost {costs}",
    What.TAKEN: "{me} runs {tasks} of {partner} for {price}: they cost {costs}",
    What.DECLINED: "{partner} does not take {tasks} any more: {why}",
    What.SENT: "{partner} runs {tasks} of {me} for {price}",
    What.VOIDED: "{me} drops {tasks}: {partner} runs them itself",
    What.LAPSED: "{partner} has not answered {me} about {tasks}: {why}",
    What.RETURNED: "{me} gives {tasks} back to {partner}: {why}",
    What.RECALLED: "{me} takes {tasks} back from {partner}: {why}",
    What.LOST: "{partner} is lost to {me}: each runs its own tasks again",
    What.BROKEN: "{me} asks {partner} nothing for a while: {why}",
}


class Lot(NamedTuple):
    """What a decision is about.

    Args:
        tasks: which.
        price: of a load unit.
        most: the marginal cost of the first task to who decided.
        least: that of the last one; the price lies between it and the partner's.
    """

    tasks: tuple[TaskId, ...] = ()
    price: Decimal | None = None
    most: float | None = None
    least: float | None = None


NOTHING: Final = Lot()


class Decision(NamedTuple):
    """A decision of a participant, with its reasons.

    Args:
        at_ms: when.
        me: who decided.
        what: what.
        partner: the other side.
        contract: under which; None: under all with the partner.
        lot: tasks, price and costs.
        why: a reason that is no price.
        others: contracts under which load could have been sent, with their prices.
    """

    at_ms: Millis
    me: PartyId
    what: What
    partner: PartyId
    contract: ContractId | None = None
    lot: Lot = NOTHING
    why: str = ""
    others: Mapping[ContractId, Buying] = {}

    @property
    def alternatives(self) -> tuple[str, ...]:
        """The other contracts, each with its price or why it was not asked."""
        return tuple(
            f"{one.contract.seller} for {one.price:.6g}"
            + (f", not asked before {one.skip_until}" if one.skip_until > self.at_ms else "")
            for key, one in self.others.items()
            if key != self.contract
        )

    def explained(self) -> str:
        """The decision and its reasons as a sentence."""
        lot = self.lot
        price = "" if lot.price is None else f"{lot.price.normalize():f} a unit"
        costs = "" if lot.most is None else f"{lot.most:.6g}"
        if lot.least is not None and lot.least != lot.most:
            costs += f" to {lot.least:.6g}"
        sentence = _SENTENCES[self.what].format(
            me=self.me,
            partner=self.partner,
            price=price,
            tasks=_tasks(lot.tasks),
            costs=f"{costs} a unit",
            why=self.why,
        )
        others = "; ".join(self.alternatives)
        return f"{sentence} (others: {others})" if others else sentence


def _tasks(tasks: tuple[TaskId, ...]) -> str:
    shown = ", ".join(tasks[:3]) or "no tasks"
    return shown if len(tasks) <= 3 else f"{shown} and {len(tasks) - 3} more"  # noqa: PLR2004 - of a sentence
