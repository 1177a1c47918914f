"""A participant of a federation: a pure state machine that trades load with its partners.

`step(state, event, now)` returns the next state, the messages to send and the reasons. The caller
delivers messages, in any order, and calls again with `Tick` at the time that the step names. Who
has nothing to sell and no offer to answer names none, and costs nothing.

The bounded-price mechanism: Balazinska, Balakrishnan, Stonebraker: Contract-Based Load Management
in Federated Distributed Systems, NSDI 2004.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from pipeline.contracts import ending, receiving, sending
from pipeline.contracts.costs import MARGIN_LEAST
from pipeline.contracts.decisions import Decision
from pipeline.contracts.load import Task
from pipeline.contracts.messages import (
    Answer,
    Confirmed,
    ContractAgreed,
    End,
    Ended,
    Event,
    LoadsChanged,
    Move,
    Offer,
    Outbound,
    PartnerLost,
    Received,
    Taken,
    TasksAdded,
    TasksRemoved,
    Tick,
)
from pipeline.contracts.permitted import room_of
from pipeline.contracts.portfolio import Held
from pipeline.contracts.state import (
    ANY_TIME,
    NEVER,
    Buying,
    Participant,
    Selling,
    Settings,
)
from pipeline.contracts.terms import Contract, Kind, PartyId
from pipeline.contracts.turn import Turn
from pipeline.errors import InputError
from pipeline.ids import Millis


class Step(NamedTuple):
    """What one event has led to.

    Args:
        state: of the participant from now on.
        messages: to send.
        decisions: with their reasons.
        wake_ms: when the participant wants a `Tick`; `NEVER`: not before another event.
    """

    state: Participant
    messages: tuple[Outbound, ...]
    decisions: tuple[Decision, ...]
    wake_ms: Millis


def participant(
    me: PartyId, settings: Settings, tasks: Iterable[Task], contracts: Iterable[Contract]
) -> Participant:
    """A participant with its own tasks and its contracts about load.

    Raises:
        InputError: two tasks of one name, a task of somebody else, a contract with others, or a
            margin that is too small for prices.
    """
    turn = Turn(Participant(me, settings), ANY_TIME)
    _add(turn, tuple(tasks))
    for contract in contracts:
        _agreed(turn, ContractAgreed(contract))
    return turn.state


def step(state: Participant, event: Event, now_ms: Millis) -> Step:
    """The reaction to one event.

    Args:
        state: before it; it stays as it is.
        event: what has happened.
        now_ms: the time, of this participant's clock.
    """
    turn = Turn(state, now_ms)
    _HANDLERS[type(event)](turn, event)
    found = turn.state
    return Step(found, tuple(turn.outbound), tuple(turn.decisions), wake_ms(found))


def wake_ms(state: Participant) -> Millis:
    """When a participant wants its next tick."""
    outgoing = state.outgoing
    found = state.offer_at if outgoing is None else outgoing.due_ms
    for one in state.incoming.values():
        found = min(found, one.due_ms)
    for stay in state.endings:
        found = min(found, stay.due_ms)
    return min(found, state.ends_ms)


def _ticked(turn: Turn, _event: Tick) -> None:
    if turn.state.ends_ms <= turn.now_ms:
        ending.end_contracts(turn)
        turn.state = turn.state._replace(ends_ms=_next_end(turn.state, turn.now_ms))
    sending.lapse(turn)
    if turn.state.incoming:
        receiving.lapse(turn)
    if turn.state.endings:
        ending.lapse(turn)
    state = turn.state
    if state.changed and state.offer_at <= turn.now_ms:
        turn.state = state._replace(changed=False)
        ending.recall_cheap(turn)
        ending.return_dear(turn)
    if turn.state.incoming:
        receiving.compare_offers(turn)
    state = turn.state
    if state.outgoing is None and state.offer_at <= turn.now_ms:
        sending.try_to_offer(turn)


def _received(turn: Turn, event: Received) -> None:
    _MESSAGES[type(event.message)](turn, event.sender, event.message)


def _loads_changed(turn: Turn, event: LoadsChanged) -> None:
    """Take in other loads."""
    _ask_all_again(turn)
    turn.owns(turn.state.portfolio.with_loads(event.loads))


def _added(turn: Turn, event: TasksAdded) -> None:
    """Run more tasks."""
    _ask_all_again(turn)
    _add(turn, event.tasks)


def _add(turn: Turn, tasks: tuple[Task, ...]) -> None:
    me, portfolio = turn.state.me, turn.state.portfolio
    names = {task.id for task in tasks}
    if len(names) != len(tasks) or names & portfolio.ids:
        raise InputError("two tasks have one name", place=f"participant {me}", hint="rename one.")
    if any(task.origin != me for task in tasks):
        raise InputError("a task has another origin", place=f"participant {me}")
    turn.owns(portfolio.taking([Held(task, None) for task in tasks]))


def _removed(turn: Turn, event: TasksRemoved) -> None:
    """Stop running tasks, here and where they were sent."""
    own = {held.task.id for held in turn.state.portfolio.running if held.link is None}
    own |= {one.task.id for one in turn.state.portfolio.sent if one.link is None}
    strange = sorted(set(event.tasks) - own)
    if strange:
        raise InputError(
            f"{', '.join(strange[:3])}: no tasks of its own",
            place=f"participant {turn.state.me}",
            hint="only the origin of a task removes it.",
        )
    _ask_all_again(turn)
    ending.remove(turn, frozenset(event.tasks))


def _ask_all_again(turn: Turn) -> None:
    """Tasks or loads have changed; what follows from that is decided at the next period.

    Partners who refused before are asked again without a pause: what is offered is another thing.
    """
    buying = {
        key: one._replace(skip_until=ANY_TIME, failures=0)
        if one.failures and not one.broken
        else one
        for key, one in turn.state.buying.items()
    }
    turn.state = turn.state._replace(buying=buying, changed=True)


def _lost(turn: Turn, event: PartnerLost) -> None:
    ending.lost(turn, event.partner)


def _agreed(turn: Turn, event: ContractAgreed) -> None:
    """Take in a contract; what is known of an earlier form of it is kept."""
    contract, state = event.contract, turn.state
    if state.me not in (contract.buyer, contract.seller):
        raise InputError(f"{state.me} is neither buyer nor seller", place=f"contract {contract.id}")
    highest, lowest = float(contract.price.highest), float(contract.price.lowest)
    if state.settings.margin < highest * MARGIN_LEAST:
        raise InputError(
            f"the margin {state.settings.margin} is too small for the price {highest}",
            place=f"participant {state.me}",
            hint=f"give at least {highest * MARGIN_LEAST}; costs.Levels computes one.",
        )
    room = room_of(contract.limits)
    if contract.kind is not Kind.LOAD:
        return
    if contract.buyer == state.me:
        known = state.buying.get(contract.id)
        if known is None:
            known = Buying(contract, highest, lowest, room, lowest)
        turn.set_buying(known._replace(contract=contract))
    else:
        earlier = state.selling.get(contract.id)
        if earlier is None:
            earlier = Selling(contract, highest, room)
        turn.set_selling(earlier._replace(contract=contract))
    turn.state = turn.state._replace(
        ends_ms=_next_end(turn.state, turn.now_ms), offer_at=turn.next_period()
    )


def _next_end(state: Participant, now_ms: Millis) -> Millis:
    """When the next of the contracts ends that have not ended yet."""
    contracts = [one.contract for one in state.buying.values()]
    contracts += [one.contract for one in state.selling.values()]
    later = [one.until_ms for one in contracts if one.until_ms > now_ms]
    return min(later, default=NEVER)


_HANDLERS: Final[Mapping[type, Callable[[Turn, Any], None]]] = {
    Tick: _ticked,
    Received: _received,
    LoadsChanged: _loads_changed,
    TasksAdded: _added,
    TasksRemoved: _removed,
    PartnerLost: _lost,
    ContractAgreed: _agreed,
}
_MESSAGES: Final[Mapping[type, Callable[[Turn, PartyId, Any], None]]] = {
    Offer: receiving.offered,
    Answer: sending.answered,
    Move: receiving.moved,
    Taken: sending.taken,
    Confirmed: receiving.confirmed,
    End: ending.end,
    Ended: ending.ended,
}
