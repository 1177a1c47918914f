"""Participants that do not follow the protocol."""

from typing import Final

from pipeline.contracts.messages import Answer, Event, Offer, Outbound, Received, Tick
from pipeline.contracts.participant import step
from pipeline.contracts.portfolio import OfferNumber
from pipeline.contracts.state import Participant
from pipeline.ids import Millis

FLOODED_TASKS: Final = 100
FLOOD: Final = 10


def lying(
    state: Participant, event: Event, now_ms: Millis
) -> tuple[Participant, tuple[Outbound, ...]]:
    """Accept every offer at once, and answer nothing else: what was accepted is never run."""
    if not isinstance(event, Received) or not isinstance(event.message, Offer):
        return (state, ()) if isinstance(event, Received) else _usual(state, event, now_ms)
    offer = event.message
    asks = tuple((task.id, offer.price) for task in offer.tasks)
    return state, (Outbound(event.sender, Answer(offer.contract, offer.number, asks)),)


def flooding(
    state: Participant, event: Event, now_ms: Millis
) -> tuple[Participant, tuple[Outbound, ...]]:
    """Act as usual, and send every partner ten more offers with each tick."""
    found, messages = _usual(state, event, now_ms)
    if not isinstance(event, Tick):
        return found, messages
    tasks = tuple(held.task for held in state.portfolio.running[:FLOODED_TASKS])
    numbers = range(found.newest + 1, found.newest + 1 + FLOOD)
    more = tuple(
        Outbound(
            one.contract.seller,
            Offer(key, OfferNumber(number), one.contract.price.highest, tasks),
        )
        for key, one in state.buying.items()
        for number in numbers
    )
    return found._replace(newest=OfferNumber(numbers[-1])), (*messages, *more)


def _usual(
    state: Participant, event: Event, now_ms: Millis
) -> tuple[Participant, tuple[Outbound, ...]]:
    found = step(state, event, now_ms)
    return found.state, found.messages
