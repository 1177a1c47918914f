"""End of stays: tasks that go back because loads changed, a contract ended or a partner is lost.

Pure. Under constant loads nothing ends, so that every move lowers the total cost and none is
undone. When loads have changed, a sender takes back what costs it less than the lowest price, and a
receiver gives back what costs it more than the highest. The other side cannot refuse, so that
nobody pays or works at a loss for longer than that takes.
"""

import math
from collections.abc import Collection, Iterable

from pipeline.contracts.decisions import Lot, What
from pipeline.contracts.messages import End, Ended
from pipeline.contracts.phases import STAY, Stay, StayEvent, after
from pipeline.contracts.portfolio import Link, OfferNumber
from pipeline.contracts.state import Ending
from pipeline.contracts.terms import ContractId, PartyId, TaskId
from pipeline.contracts.turn import Turn


def recall_cheap(turn: Turn) -> None:
    """Take back what costs less here than the lowest price of its contract, dearest first."""
    state = turn.state
    settings, at = state.settings, state.settings.cost.at
    load, found = state.portfolio.load.plus(state.reserved), list[tuple[Link, TaskId]]()
    before = at(*load)
    for one in sorted(state.portfolio.sent, key=lambda one: -one.move.price):
        lowest = state.buying[one.move.contract].lowest
        more = load.plus(one.task.load)
        after_ = at(*more)
        units = one.task.load.units
        if (
            units > 0
            and after_ != math.inf
            and (after_ - before) / units + settings.margin <= lowest
        ):
            found.append((one.move, one.task.id))
            load, before = more, after_
    _recall(turn, found, "they cost less here now than the lowest price")


def return_dear(turn: Turn) -> None:
    """Give back what costs more here than the highest price of its contract, worst-paid first."""
    state = turn.state
    settings, at = state.settings, state.settings.cost.at
    load, found = state.portfolio.load, list[tuple[Link, TaskId]]()
    ending = {task for one in state.endings for task in one.tasks}
    foreign = [(link, task) for task, link in state.portfolio.running if link is not None]
    before = at(*load)
    for link, task in sorted(foreign, key=lambda one: one[0].price):
        less, units = load.minus(task.load), task.load.units
        after_ = at(*less)
        saved = math.inf if before == math.inf else (before - after_) / units if units else 0.0
        if saved > state.selling[link.contract].highest + settings.margin:
            if task.id not in ending:
                found.append((link, task.id))
            load, before = less, after_
    _return(turn, found, "they cost more here now than the highest price")


def end_contracts(turn: Turn) -> None:
    """End all stays under contracts that are over."""
    state, now_ms = turn.state, turn.now_ms
    over = {key for key, one in state.buying.items() if one.contract.until_ms <= now_ms}
    sent = [(one.move, one.task.id) for one in state.portfolio.sent if one.move.contract in over]
    _recall(turn, sent, "the contract is over")
    over = {key for key, one in state.selling.items() if one.contract.until_ms <= now_ms}
    ending = {task for one in state.endings for task in one.tasks}
    held = [
        (link, task.id)
        for task, link in state.portfolio.running
        if link is not None and link.contract in over and task.id not in ending
    ]
    _return(turn, held, "the contract is over")


def remove(turn: Turn, gone: Collection[TaskId]) -> None:
    """Drop tasks; a partner that runs one is told that its stay ends."""
    sent = [(one.move, one.task.id) for one in turn.state.portfolio.sent if one.task.id in gone]
    _recall(turn, sent, "they are no more")
    turn.owns(turn.state.portfolio.dropping(gone))


def _recall(turn: Turn, stays: Iterable[tuple[Link, TaskId]], why: str) -> None:
    for link, tasks in _by_move(stays):
        after(STAY, Stay.RUNNING, StayEvent.RECALLED)
        turn.owns(turn.state.portfolio.bringing(tasks))
        turn.decide(What.RECALLED, link.partner, link.contract, Lot(tasks, link.price), why)
        _end(turn, link, tasks, is_buyer=True)


def _return(turn: Turn, stays: Iterable[tuple[Link, TaskId]], why: str) -> None:
    for link, tasks in _by_move(stays):
        after(STAY, Stay.RUNNING, StayEvent.RETURNED)
        turn.decide(What.RETURNED, link.partner, link.contract, Lot(tasks, link.price), why)
        _end(turn, link, tasks, is_buyer=False)


def _by_move(
    stays: Iterable[tuple[Link, TaskId]],
) -> list[tuple[Link, tuple[TaskId, ...]]]:
    found: dict[Link, list[TaskId]] = {}
    for link, task in stays:
        found.setdefault(link, []).append(task)
    return [(link, tuple(tasks)) for link, tasks in found.items()]


def _end(turn: Turn, link: Link, tasks: tuple[TaskId, ...], *, is_buyer: bool) -> None:
    due_ms = turn.in_ms(turn.state.settings.retry_ms)
    ending = Ending(link.partner, link.contract, link.number, tasks, is_buyer, due_ms, 1)
    turn.set_endings((*turn.state.endings, ending))
    turn.send(link.partner, End(link.contract, link.number, tasks))


def end(turn: Turn, sender: PartyId, message: End) -> None:
    """The other side ends stays: run the tasks again, or stop running them. Repeated: the same.

    A task that had been sent on goes back further, to where it came from; a partner who runs it
    for this participant is told the same.
    """
    state, portfolio = turn.state, turn.state.portfolio
    buying, selling = state.buying.get(message.contract), state.selling.get(message.contract)
    asked = set(message.tasks)
    if buying is not None and buying.contract.seller == sender:
        back = asked & set(portfolio.sent_under(message.contract, message.number))
        if back:
            turn.owns(portfolio.bringing(back))
            onward = [
                (held.link, held.task.id)
                for held in turn.state.portfolio.running
                if held.link is not None and held.task.id in back
            ]
            _return(turn, onward, f"{sender} has given them back")
    elif selling is not None and selling.contract.buyer == sender:
        _stop(turn, message.contract, message.number, asked)
    else:
        return
    turn.send(sender, Ended(message.contract, message.number, message.tasks))


def _stop(turn: Turn, contract: ContractId, number: OfferNumber, asked: set[TaskId]) -> None:
    """Stop running tasks of a partner, here or where they were sent on to."""
    portfolio = turn.state.portfolio
    passed = [
        (one.move, one.task.id)
        for one in portfolio.sent
        if one.task.id in asked and one.link is not None and one.link.is_of(contract, number)
    ]
    _recall(turn, passed, "they end where they came from")
    gone = asked & set(turn.state.portfolio.held_under(contract, number))
    if gone:
        turn.owns(turn.state.portfolio.dropping(gone))
        left = set(turn.state.portfolio.held_under(contract, number))
        incoming = turn.state.incoming.get(contract)
        if incoming is not None and incoming.number == number and not left:
            turn.set_incoming(contract, None)


def ended(turn: Turn, sender: PartyId, message: Ended) -> None:
    """The other side has ended stays: no more is sent about them."""
    kept = list[Ending]()
    for one in turn.state.endings:
        same = (one.partner, one.contract, one.number) == (
            sender,
            message.contract,
            message.number,
        )
        if not (same and set(one.tasks) <= set(message.tasks)):
            kept.append(one)
            continue
        after(STAY, Stay.ENDING, StayEvent.ENDED)
        _over(turn, one)
    if len(kept) != len(turn.state.endings):
        turn.set_endings(kept)


def _over(turn: Turn, ending: Ending) -> None:
    """A stay is over: the one who ran the task for the other side drops it."""
    if not ending.is_buyer:
        _stop(turn, ending.contract, ending.number, set(ending.tasks))


def lapse(turn: Turn) -> None:
    """Send again what has not been answered; after a number of times the partner counts as lost."""
    settings, kept, gone = turn.state.settings, list[Ending](), list[Ending]()
    for one in turn.state.endings:
        if one.due_ms > turn.now_ms:
            kept.append(one)
        elif one.tries >= settings.tries:
            gone.append(one)
        else:
            pause_ms = min(settings.skip_most_ms, settings.retry_ms << one.tries)
            kept.append(one._replace(due_ms=turn.in_ms(pause_ms), tries=one.tries + 1))
            turn.send(one.partner, End(one.contract, one.number, one.tasks))
    if kept != list(turn.state.endings):
        turn.set_endings(kept)
    for one in gone:
        after(STAY, Stay.ENDING, StayEvent.LOST)
        _over(turn, one)


def lost(turn: Turn, partner: PartyId) -> None:
    """A partner does not answer: run again what it ran, drop what was run for it, owe nothing.

    What was run for it and sent on is taken back from there. It is asked again after the longest
    pause.
    """
    state = turn.state
    turn.set_endings([one for one in state.endings if one.partner != partner])
    back = {one.task.id for one in state.portfolio.sent if one.move.partner == partner}
    turn.owns(turn.state.portfolio.bringing(back))
    passed = [
        (one.move, one.task.id)
        for one in turn.state.portfolio.sent
        if one.link is not None and one.link.partner == partner
    ]
    _recall(turn, passed, f"{partner} is lost, for whom they were run")
    gone = {
        task.id
        for task, link in turn.state.portfolio.running
        if link is not None and link.partner == partner
    }
    turn.owns(turn.state.portfolio.dropping(gone))
    for contract in turn.state.incoming:
        if turn.state.selling[contract].contract.buyer == partner:
            turn.set_incoming(contract, None)
    for buying in tuple(turn.state.buying.values()):
        if buying.contract.seller == partner:
            turn.skip(buying, broken=True)
            outgoing = turn.state.outgoing
            if outgoing is not None and outgoing.contract == buying.contract.id:
                turn.state = turn.state._replace(outgoing=None, offer_at=turn.next_period())
    turn.decide(What.LOST, partner, None, Lot(tuple(sorted(back | gone))))
