"""Receiver: compares the offers of a period, best-paying first, and takes what costs less. Pure."""

from collections.abc import Collection, Sequence
from decimal import Decimal
from typing import NamedTuple

from pipeline.contracts.decisions import Lot, What
from pipeline.contracts.load import NO_LOAD, Load, Task, Work
from pipeline.contracts.messages import Answer, Confirmed, Move, Offer, Taken
from pipeline.contracts.offers import Ask, Taking, asks
from pipeline.contracts.permitted import permits
from pipeline.contracts.phases import RECEIVING, Receiving, ReceivingEvent, after
from pipeline.contracts.portfolio import Held, Link, total
from pipeline.contracts.state import Incoming, Participant, Selling
from pipeline.contracts.terms import ContractId, Kind, PartyId, TaskId
from pipeline.contracts.turn import Turn


def offered(turn: Turn, sender: PartyId, offer: Offer) -> None:
    """Keep an offer until offers are compared; refuse one that no contract permits.

    A sender has one offer at a time, so a newer one ends an older one, and one that is not newer
    is doubled or late.
    """
    selling = _selling(turn, sender, offer.contract)
    if selling is None or offer.number <= selling.newest:
        return
    incoming = turn.state.incoming.get(offer.contract)
    if incoming is not None and incoming.phase is Receiving.TAKEN:
        return  # the sender has not confirmed the move before, so it asks again
    turn.set_selling(selling._replace(newest=offer.number))
    price, contract = offer.price, selling.contract
    sound = price.is_finite() and contract.price.lowest <= price <= contract.price.highest
    if not sound or contract.kind is not Kind.LOAD or not contract.is_in_force(turn.now_ms):
        why = "the contract is not in force, or the price is outside of its range"
        _refuse(turn, selling, offer, why)
        return
    phase = Receiving.FREE if incoming is None else incoming.phase
    waiting = Incoming(
        after(RECEIVING, phase, ReceivingEvent.OFFERED),
        offer.number,
        price,
        offer.tasks,
        turn.next_period(),
    )
    turn.set_incoming(offer.contract, waiting)


def compare_offers(turn: Turn) -> None:
    """Answer the offers that wait: best-paying first, each beside those accepted before."""
    state = turn.state
    waiting = [
        (state.selling[key], one)
        for key, one in _in_order(state)
        if one.phase is Receiving.WAITING and one.due_ms <= turn.now_ms
    ]
    if not waiting:
        return
    load, accepted = state.portfolio.load.plus(state.reserved), set[TaskId]()
    for selling, incoming in sorted(waiting, key=lambda one: -one[1].price):
        found = _asks(turn, selling, Wanted(incoming.price, incoming.tasks, load), accepted)
        _answer(turn, selling, incoming, found)
        for one in found:
            load = load.plus(one.task.load)
            accepted.add(one.task.id)


def _in_order(state: Participant) -> list[tuple[ContractId, Incoming]]:
    """The offers in progress, in the order of their contracts."""
    return [(key, state.incoming[key]) for key in state.selling if key in state.incoming]


class Wanted(NamedTuple):
    """What is asked of a receiver: tasks, the price offered, and the load beside them."""

    price: Decimal
    tasks: Sequence[Task]
    load: Load


def _asks(turn: Turn, selling: Selling, wanted: Wanted, mine: Collection[TaskId]) -> list[Ask]:
    state, contract = turn.state, selling.contract
    permitted: dict[Work, bool] = {}

    def may_take(task: Task) -> bool:
        if task.id in state.portfolio.ids or task.id in mine or not task.may_go_to(state.me):
            return False
        if task.work not in permitted:
            permitted[task.work] = permits(contract, task.work)
        return permitted[task.work]

    terms = Taking(wanted.price, state.settings.margin, room_left(turn, selling), may_take)
    return asks(state.settings.cost, wanted.load, wanted.tasks, contract.price, terms)


def room_left(turn: Turn, selling: Selling) -> Load:
    """What the limits of a contract leave for more tasks."""
    return selling.room.minus(turn.state.portfolio.used.get(selling.contract.id, NO_LOAD))


def _answer(turn: Turn, selling: Selling, incoming: Incoming, found: list[Ask]) -> None:
    contract = selling.contract
    offer = Offer(contract.id, incoming.number, incoming.price, incoming.tasks)
    if not found:
        after(RECEIVING, incoming.phase, ReceivingEvent.REFUSED)
        why = "each would cost more than the price, or does not fit the contract"
        _refuse(turn, selling, offer, why)
        return
    reserved = Incoming(
        after(RECEIVING, incoming.phase, ReceivingEvent.ACCEPTED),
        incoming.number,
        incoming.price,
        tuple([one.task for one in found]),
        turn.in_ms(2 * turn.state.settings.answer_ms),
    )
    turn.set_incoming(contract.id, reserved)
    ids = tuple([one.task.id for one in found])
    lot = Lot(ids, found[-1].price, found[0].marginal, found[-1].marginal)
    turn.decide(What.ACCEPTED, contract.buyer, contract.id, lot)
    answers = tuple([(one.task.id, one.price) for one in found])
    turn.send(contract.buyer, Answer(contract.id, incoming.number, answers))


def _refuse(turn: Turn, selling: Selling, offer: Offer, why: str) -> None:
    turn.set_incoming(offer.contract, None)
    lot = Lot(tuple([task.id for task in offer.tasks]), offer.price)
    turn.decide(What.REFUSED, selling.contract.buyer, selling.contract.id, lot, why)
    turn.send(selling.contract.buyer, Answer(offer.contract, offer.number, ()))


def moved(turn: Turn, sender: PartyId, move: Move) -> None:
    """Run the tasks of a move that still pay with the loads of now; say which.

    A move that is doubled is answered again; one whose reservation has lapsed moves nothing.
    """
    selling = _selling(turn, sender, move.contract)
    if selling is None:
        return
    incoming = turn.state.incoming.get(move.contract)
    is_current = incoming is not None and incoming.number == move.number
    if incoming is None or not is_current or incoming.phase is not Receiving.RESERVED:
        held = turn.state.portfolio.held_under(move.contract, move.number)
        turn.send(sender, Taken(move.contract, move.number, held))
        return
    accepted = _still_paying(turn, selling, incoming, move)
    if not accepted:
        after(RECEIVING, incoming.phase, ReceivingEvent.DECLINED)
        turn.set_incoming(move.contract, None)
        turn.send(sender, Taken(move.contract, move.number, ()))
        return
    link = Link(sender, move.contract, move.number, move.price)
    tasks = tuple([one.task.sent_by(sender) for one in accepted])
    taken = Incoming(
        after(RECEIVING, incoming.phase, ReceivingEvent.MOVED),
        move.number,
        move.price,
        tasks,
        turn.in_ms(turn.state.settings.retry_ms),
        1,
    )
    turn.owns(turn.state.portfolio.taking([Held(task, link) for task in tasks]))
    turn.set_incoming(move.contract, taken)
    ids = tuple([task.id for task in tasks])
    lot = Lot(ids, move.price, accepted[0].marginal, accepted[-1].marginal)
    turn.decide(What.TAKEN, sender, move.contract, lot)
    turn.send(sender, Taken(move.contract, move.number, ids))


def _still_paying(turn: Turn, selling: Selling, incoming: Incoming, move: Move) -> list[Ask]:
    """What of a move costs less than its price now, beside all else that was accepted."""
    state, contract, price = turn.state, selling.contract, move.price
    sound = price.is_finite() and contract.price.lowest <= price <= contract.price.highest
    if not sound or not contract.is_in_force(turn.now_ms):
        return []
    reserved = {task.id for task in incoming.tasks}
    load = state.portfolio.load.plus(state.reserved.minus(total(incoming.tasks)))
    tasks = tuple([task for task in move.tasks if task.id in reserved])
    wanted = Wanted(incoming.price, tasks, load)
    found = _asks(turn, selling, wanted, ())
    return [one for one in found if one.price <= price]


def confirmed(turn: Turn, sender: PartyId, message: Confirmed) -> None:
    """The sender has stopped running these tasks; those that it has not are dropped here."""
    selling = _selling(turn, sender, message.contract)
    incoming = turn.state.incoming.get(message.contract)
    is_current = incoming is not None and incoming.number == message.number
    if selling is None or incoming is None or not is_current:
        return
    if incoming.phase is not Receiving.TAKEN:
        return
    void = {task.id for task in incoming.tasks} - set(message.tasks)
    event = ReceivingEvent.CONFIRMED if message.tasks else ReceivingEvent.VOIDED
    after(RECEIVING, incoming.phase, event)
    turn.set_incoming(message.contract, None)
    if void:
        turn.owns(turn.state.portfolio.dropping(void))
        turn.decide(What.VOIDED, sender, message.contract, Lot(tuple(sorted(void))))


def lapse(turn: Turn) -> None:
    """End reservations whose deadline has passed; send `Taken` again, a limited number of times."""
    for contract, incoming in _in_order(turn.state):
        if incoming.due_ms > turn.now_ms:
            continue
        if incoming.phase is Receiving.RESERVED:
            after(RECEIVING, incoming.phase, ReceivingEvent.LAPSED)
            turn.set_incoming(contract, None)
        elif incoming.phase is Receiving.TAKEN:
            _take_again(turn, turn.state.selling[contract], incoming)


def _take_again(turn: Turn, selling: Selling, incoming: Incoming) -> None:
    settings, contract = turn.state.settings, selling.contract
    ids = tuple([task.id for task in incoming.tasks])
    if incoming.tries < settings.tries:
        pause_ms = min(settings.skip_most_ms, settings.retry_ms << incoming.tries)
        again = incoming._replace(due_ms=turn.in_ms(pause_ms), tries=incoming.tries + 1)
        turn.set_incoming(contract.id, again)
        turn.send(contract.buyer, Taken(contract.id, incoming.number, ids))
        return
    after(RECEIVING, incoming.phase, ReceivingEvent.LAPSED)
    turn.set_incoming(contract.id, None)
    turn.owns(turn.state.portfolio.dropping(set(ids)))
    why = "nothing is owed for them"
    turn.decide(What.LAPSED, contract.buyer, contract.id, Lot(ids), why)


def _selling(turn: Turn, sender: PartyId, contract: ContractId) -> Selling | None:
    """The contract of a message; None: a stranger sent it, or there is none."""
    found = turn.state.selling.get(contract)
    return found if found is not None and found.contract.buyer == sender else None
