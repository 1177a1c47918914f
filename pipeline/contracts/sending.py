"""Sender: offers load to the cheapest partner, and moves what still pays after the answer. Pure."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from pipeline.contracts.decisions import Lot, What
from pipeline.contracts.load import NO_LOAD, Load, Task
from pipeline.contracts.messages import Answer, Confirmed, Move, Offer, Taken
from pipeline.contracts.offers import Quoted, Selection, deal, is_worth_sending, worth_sending
from pipeline.contracts.permitted import permits
from pipeline.contracts.phases import SENDING, Sending, SendingEvent, after
from pipeline.contracts.portfolio import Groups, Link, OfferNumber, grouped
from pipeline.contracts.state import ANY_TIME, NEVER, Buying, Outgoing, Participant
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.contracts.turn import Turn
from pipeline.ids import Millis

MOVE_TRIES: Final = 5
"""How often a move is sent before it lapses."""


def try_to_offer(turn: Turn) -> bool:
    """Offer to the cheapest partner who can be asked now, and to whom it is worth offering.

    If there is none, it is tried again when the next partner can be asked; to those who could be
    asked now it is not worth offering until the load changes.

    Returns:
        Whether something was offered.
    """
    state, now_ms, next_ms = turn.state, turn.now_ms, NEVER
    ready: list[Buying] = []
    for buying in state.buying.values():
        contract = buying.contract
        if contract.until_ms <= now_ms:
            continue
        if buying.skip_until <= now_ms and contract.from_ms <= now_ms:
            ready.append(buying)
        else:
            next_ms = min(next_ms, max(buying.skip_until, contract.from_ms))
    settings, portfolio = state.settings, state.portfolio
    floor = min((one.lowest for one in ready), default=NEVER) + settings.margin
    if not is_worth_sending(settings.cost, portfolio.load, portfolio.groups, floor):
        ready = []
    ready.sort(key=lambda one: (one.price, one.failures, one.skip_until))
    for buying in ready:
        chosen = _offered(state, buying)
        if chosen.held:
            due_ms = Millis(state.since_ms + wait_ms(state, chosen))
            if due_ms > now_ms:
                turn.state = state._replace(offer_at=due_ms)
                return False
            _offer(turn, buying, chosen)
            return True
    turn.state = turn.state._replace(offer_at=next_ms)
    return False


def _offered(state: Participant, buying: Buying) -> Selection:
    """What is worth offering under a contract."""
    return worth_sending(
        state.settings.cost,
        state.portfolio.load,
        sendable(state, buying),
        buying.lowest + state.settings.margin,
        room_left(state, buying),
    )


def wait_ms(state: Participant, chosen: Selection) -> int:
    """How long a sender waits before an offer: the less, the more of its load pays to send.

    Who has little to send finds a partner later too; who has much needs all of its partners. With
    the room that partners have left for it, fewer moves lead through a third participant.
    """
    share = min(1.0, chosen.paying / state.portfolio.load.units)
    return int(state.settings.patience_ms * (1 - share) ** 3)


def sendable(state: Participant, buying: Buying) -> Groups:
    """The tasks that a contract is about, and that may go to its seller; one's own first."""
    held, ranges = state.portfolio.groups
    ending = {task for one in state.endings for task in one.tasks}
    if ending:
        held, ranges = grouped(tuple([one for one in held if one.task.id not in ending]))
    contract, passes_on = buying.contract, state.settings.passes_on
    last, permitted = None, False
    found: list[tuple[int, int]] = []
    for one in ranges:
        task, link = held[one[0]]
        if task.work is not last:
            last, permitted = task.work, permits(contract, task.work)
        if permitted and (link is None or (passes_on and task.may_go_to(contract.seller))):
            found.append(one)
    return Groups(held, tuple(found))


def room_left(state: Participant, buying: Buying) -> Load:
    """What the limits of a contract leave for more tasks."""
    return buying.room.minus(state.portfolio.used.get(buying.contract.id, NO_LOAD))


def _offer(turn: Turn, buying: Buying, chosen: Selection) -> None:
    state, contract = turn.state, buying.contract
    number = OfferNumber(state.newest + 1)
    price = contract.price.lowest
    tasks = tuple([held.task for held in chosen.held])
    ids = tuple([task.id for task in tasks])
    phase = after(SENDING, Sending.IDLE, SendingEvent.OFFER)
    due_ms = turn.in_ms(state.settings.answer_ms)
    lot = Lot(ids, price, chosen.most, chosen.least)
    turn.decide(What.OFFERED, contract.seller, contract.id, lot)
    turn.state = state._replace(
        newest=number,
        outgoing=Outgoing(phase, contract.id, number, price, ids, len(ids), due_ms),
        offer_at=NEVER,
    )
    turn.send(contract.seller, Offer(contract.id, number, price, tasks))


def answered(turn: Turn, sender: PartyId, answer: Answer) -> None:
    """Deal with an answer: move what still pays. A late, doubled or strange one moves nothing."""
    outgoing = _outgoing(turn, sender, answer.contract, answer.number, Sending.OFFERED)
    if outgoing is None:
        return
    buying = turn.state.buying[outgoing.contract]
    problem = _wrong_answer(buying, outgoing, answer)
    if problem:
        _finish(turn, outgoing, SendingEvent.REFUSED)
        turn.skip(buying, broken=True)
        turn.decide(What.BROKEN, sender, answer.contract, Lot(outgoing.tasks), problem)
        return
    if not answer.asks:
        _finish(turn, outgoing, SendingEvent.REFUSED)
        turn.skip(buying._replace(price=buying.highest))
        return
    state = turn.state
    groups = sendable(state, buying)
    running = {
        held.task.id: held for start, stop in groups.ranges for held in groups.held[start:stop]
    }
    asked = [(running[task], price) for task, price in answer.asks if task in running]
    margin = state.settings.margin
    found = deal(state.settings.cost, state.portfolio.load, asked, margin) if asked else None
    if found is None:
        _finish(turn, outgoing, SendingEvent.REFUSED)
        turn.skip(buying._replace(price=float(answer.asks[0][1])))
        why = f"it asks {answer.asks[0][1].normalize():f}, more than it costs here"
        turn.decide(What.WITHDRAWN, sender, answer.contract, Lot(outgoing.tasks), why)
        return
    _move(turn, outgoing, found.tasks, found.price)


def _wrong_answer(buying: Buying, outgoing: Outgoing, answer: Answer) -> str:
    """How an answer breaks the protocol; empty if it does not."""
    offered, seen, last = set(outgoing.tasks), set[TaskId](), outgoing.price
    for task, price in answer.asks:
        if task not in offered or task in seen:
            return f"it answers {task}, which was not offered, or twice"
        if price is not last:
            if not (price.is_finite() and last <= price <= buying.contract.price.highest):
                return f"it asks {price}, outside of the range or less than for a task before"
            last = price
        seen.add(task)
    return ""


def _move(turn: Turn, outgoing: Outgoing, tasks: Sequence[Quoted], price: Decimal) -> None:
    ids = tuple([one.held.task.id for one in tasks])
    moving = outgoing._replace(
        phase=after(SENDING, outgoing.phase, SendingEvent.ACCEPTED), price=price, tasks=ids
    )
    seller = turn.state.buying[outgoing.contract].contract.seller
    lot = Lot(ids, price, tasks[0].marginal, tasks[-1].marginal)
    turn.decide(What.MOVING, seller, outgoing.contract, lot)
    _send_move(turn, moving, tuple([one.held.task for one in tasks]))


def _send_move(turn: Turn, moving: Outgoing, tasks: tuple[Task, ...]) -> None:
    seller = turn.state.buying[moving.contract].contract.seller
    due_ms = turn.in_ms(turn.state.settings.retry_ms << moving.tries)
    turn.state = turn.state._replace(
        outgoing=moving._replace(due_ms=due_ms, tries=moving.tries + 1)
    )
    turn.send(seller, Move(moving.contract, moving.number, moving.price, tasks))


def taken(turn: Turn, sender: PartyId, message: Taken) -> None:
    """The receiver runs tasks: stop running them here, and confirm. If it is late: void it."""
    outgoing = _outgoing(turn, sender, message.contract, message.number, Sending.MOVING)
    if outgoing is None:
        _confirm_again(turn, sender, message)
        return
    buying = turn.state.buying[outgoing.contract]
    here = {held.task.id for held in turn.state.portfolio.running} & set(outgoing.tasks)
    ids = [task for task in message.tasks if task in here]
    if not ids:
        _finish(turn, outgoing, SendingEvent.DECLINED)
        turn.skip(buying)
        why = "its load has changed since it accepted"
        turn.decide(What.DECLINED, sender, outgoing.contract, Lot(outgoing.tasks), why)
    else:
        _finish(turn, outgoing, SendingEvent.TAKEN)
        link = Link(sender, outgoing.contract, outgoing.number, outgoing.price)
        turn.owns(turn.state.portfolio.sending(set(ids), link))
        turn.set_buying(
            buying._replace(
                price=float(outgoing.price), failures=0, skip_until=ANY_TIME, broken=False
            )
        )
        turn.decide(What.SENT, sender, outgoing.contract, Lot(tuple(ids), outgoing.price))
    turn.send(sender, Confirmed(message.contract, message.number, tuple(ids)))


def _confirm_again(turn: Turn, sender: PartyId, message: Taken) -> None:
    """Answer a `Taken` that is doubled or late: by where the tasks are now."""
    buying = turn.state.buying.get(message.contract)
    if buying is None or buying.contract.seller != sender:
        return
    ids = turn.state.portfolio.sent_under(message.contract, message.number)
    turn.send(sender, Confirmed(message.contract, message.number, ids))


def lapse(turn: Turn) -> None:
    """The deadline of the offer or move has passed: send the move again, or give it up."""
    outgoing = turn.state.outgoing
    if outgoing is None or outgoing.due_ms > turn.now_ms:
        return
    buying = turn.state.buying[outgoing.contract]
    if outgoing.phase is Sending.MOVING and outgoing.tries < MOVE_TRIES:
        running = {held.task.id: held.task for held in turn.state.portfolio.running}
        tasks = tuple([running[task] for task in outgoing.tasks if task in running])
        _send_move(turn, outgoing, tasks)
        return
    _finish(turn, outgoing, SendingEvent.LAPSED)
    turn.skip(buying, broken=True)
    why = f"they stay at {turn.state.me}"
    turn.decide(What.LAPSED, buying.contract.seller, outgoing.contract, Lot(outgoing.tasks), why)


def _outgoing(
    turn: Turn, sender: PartyId, contract: str, number: OfferNumber, phase: Sending
) -> Outgoing | None:
    """The offer or move that a message answers; None: it is late, doubled or a stranger's."""
    found = turn.state.outgoing
    if found is None or (found.contract, found.number, found.phase) != (contract, number, phase):
        return None
    return found if turn.state.buying[found.contract].contract.seller == sender else None


def _finish(turn: Turn, outgoing: Outgoing, event: SendingEvent) -> None:
    """The offer or move is over; the next one is tried at the next period."""
    after(SENDING, outgoing.phase, event)
    turn.state = turn.state._replace(
        outgoing=None, offer_at=turn.next_period(), since_ms=turn.now_ms
    )
