"""Measures of a federation: how far from acceptable, and what taking part is worth."""

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.contracts.costs import QueueingCost
from pipeline.contracts.load import Load
from pipeline.contracts.portfolio import total
from pipeline.contracts.state import Participant
from pipeline.contracts.terms import PartyId

COUNTED_MOST: Final = 0.99
"""Utilisation up to which a cost is counted: that of an overload would be infinite."""


def misallocated(loads: Sequence[float], threshold: float) -> float:
    """Misallocated capacity in per cent: the lower of excess and spare, of the capacity of all.

    0 is an acceptable allocation: nobody is above the threshold, or everyone is at it or above.

    Args:
        loads: load units of each participant.
        threshold: what each wants to run at most.
    """
    excess = sum(max(0.0, load - threshold) for load in loads)
    spare = sum(max(0.0, threshold - load) for load in loads)
    return 100 * min(excess, spare) / (threshold * len(loads))


def own_load(state: Participant) -> Load:
    """The load of the tasks that belong to a participant, wherever they run."""
    own = [held.task for held in state.portfolio.running if held.link is None]
    return total(own + [sent.task for sent in state.portfolio.sent if sent.link is None])


def gains(states: Sequence[Participant], cost: QueueingCost) -> Mapping[PartyId, float]:
    """What each participant saves and earns per second, compared with running its own tasks.

    Each payment is counted once for both sides, as the buyer has it.

    Args:
        states: of all participants.
        cost: of each of them.
    """
    found = {
        one.me: counted(cost, own_load(one)) - counted(cost, one.portfolio.load) for one in states
    }
    for one in states:
        for sent in one.portfolio.sent:
            amount = float(sent.move.price) * sent.task.load.units
            found[one.me] -= amount
            found[sent.move.partner] += amount
    return found


def counted(cost: QueueingCost, load: Load) -> float:
    """The cost of a load, at most that of `COUNTED_MOST`, from where it goes on in a line."""
    kept, over = list(load), 0.0
    for at, most in enumerate(cost.capacity):
        if most and load[at] > COUNTED_MOST * most:
            kept[at] = COUNTED_MOST * most
            over += (load[at] - kept[at]) / ((1 - COUNTED_MOST) ** 2 * most)
    return cost.at(*kept) + over * cost.value


def runs_once(states: Sequence[Participant]) -> bool:
    """Whether every task runs at one participant; two may for a while when messages are lost."""
    runs = [held.task.id for one in states for held in one.portfolio.running]
    own = {task for one in states for task in one.portfolio.ids}
    return len(runs) == len(set(runs)) == len(own)
