"""Measures of a federation: how far from acceptable, and what taking part is worth."""

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.contracts.costs import CostFunction
from pipeline.contracts.load import NO_LOAD, Load
from pipeline.contracts.simulation.scenario import CAPACITY
from pipeline.contracts.state import Participant
from pipeline.contracts.terms import PartyId

COUNTED_MOST: Final = 0.99
"""Utilisation up to which a cost is counted: that of an overload would be infinite."""


def misallocated(states: Sequence[Participant], threshold: float) -> float:
    """Misallocated capacity in per cent: the lower of excess and spare, of the capacity of all.

    0 is an acceptable allocation: nobody is above the threshold, or everyone is at it or above.
    """
    loads = [one.portfolio.load.units for one in states]
    excess = sum(max(0.0, load - threshold) for load in loads)
    spare = sum(max(0.0, threshold - load) for load in loads)
    return 100 * min(excess, spare) / (threshold * len(states))


def costs_now(states: Sequence[Participant]) -> Mapping[PartyId, tuple[float, float]]:
    """Each participant's cost per second: as it is, with payments, and if it ran its own tasks.

    Each payment is counted once for both sides, as the buyer has it.
    """
    paid = {one.me: 0.0 for one in states}
    home = {one.me: list[Load]() for one in states}
    for one in states:
        home[one.me] += [held.task.load for held in one.portfolio.running if held.link is None]
        for sent in one.portfolio.sent:
            amount = float(sent.move.price) * sent.task.load.units
            paid[one.me] += amount
            paid[sent.move.partner] -= amount
            if sent.link is None:
                home[one.me].append(sent.task.load)
    found = {}
    for one in states:
        cost = one.settings.cost
        alone = Load(*(sum(part) for part in zip(NO_LOAD, *home[one.me], strict=True)))
        with_others = counted(cost, one.portfolio.load) + paid[one.me]
        found[one.me] = (with_others, counted(cost, alone))
    return found


def counted(cost: CostFunction, load: Load) -> float:
    """The cost of a load, at most that of `COUNTED_MOST`, from where it goes on in a line."""
    most = COUNTED_MOST * CAPACITY
    kept = Load(min(load.cpu, most), min(load.bytes, most), load.memory)
    over = load.units - kept.units
    slope = 1 / ((1 - COUNTED_MOST) ** 2 * CAPACITY)
    return cost.at(*kept) + over * slope


def runs_once(states: Sequence[Participant]) -> bool:
    """Whether every task runs at one participant; two may for a while when messages are lost."""
    runs = [held.task.id for one in states for held in one.portfolio.running]
    own = {task for one in states for task in one.portfolio.ids}
    return len(runs) == len(set(runs)) == len(own)
