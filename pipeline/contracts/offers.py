"""Offer rule of the bounded-price mechanism: which tasks move, and at which price. Pure.

A sender offers what costs it more than the price, a receiver accepts what costs it less, both
cumulatively: each task is counted beside those that were chosen before it. The price:

1. The sender offers at the lowest price of the contract, and only tasks that cost it more.
2. The receiver answers each task with its own marginal cost and its margin, but not less than what
   was offered, and leaves out what would cost it more than the highest price.
3. The sender picks from the answer the tasks that still cost it more than is asked. All move at
   one price: the highest that is asked for any of them.

So the price of a move is the marginal cost of the receiver for the last task that moves, clamped to
the range. The receiver keeps the difference to its costs of the tasks before, the sender the
difference to its own costs, which are higher for each.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from pipeline.contracts.costs import CostFunction
from pipeline.contracts.load import Load, Task
from pipeline.contracts.portfolio import Held
from pipeline.contracts.terms import Price

OFFER_MOST: Final = 10_000
"""The most tasks in an offer."""
_STEPS: Final = 10**12
"""Steps of a price within one unit of money: those that a price may have."""


class Quoted(NamedTuple):
    """A task with what it costs its participant per load unit, beside those chosen before."""

    held: Held
    marginal: float


class Ask(NamedTuple):
    """A task with the lowest price at which the receiver takes it and those before it."""

    task: Task
    price: Decimal
    marginal: float


class Deal(NamedTuple):
    """What a sender moves after an answer: tasks with their marginal costs, and the price."""

    tasks: tuple[Quoted, ...]
    price: Decimal


def worth_sending(
    cost: CostFunction, load: Load, tasks: Sequence[Held], floor: float, room: Load
) -> list[Quoted]:
    """The tasks that cost more than a price, cumulatively.

    What remains after each one costs less, since costs are convex: a task that is not worth it
    is not worth it later, nor is another one of the same load. Overloaded, all tasks are.

    Args:
        cost: of the sender.
        load: that it runs now.
        tasks: some of those, in the order in which they are tried.
        floor: the price with the margin of the sender.
        room: what the limits of the contract leave.
    """
    at, (cpu, byte, memory) = cost.at, load
    room_cpu, room_bytes, room_memory = room
    before = at(cpu, byte, memory)
    overloaded = before == math.inf
    chosen: list[Quoted] = []
    failed: set[Load] = set()
    last_failed: Load | None = None
    for held in tasks:
        part = held.task.load
        if part is last_failed or (failed and part in failed):
            continue
        part_cpu, part_bytes, part_memory = part
        units = part_cpu + part_bytes
        fits = part_cpu <= room_cpu and part_bytes <= room_bytes and part_memory <= room_memory
        if units > 0 and fits:
            less = (cpu - part_cpu, byte - part_bytes, memory - part_memory)
            after = at(*less)
            marginal = math.inf if before == math.inf else (before - after) / units
            if marginal > floor or overloaded:
                chosen.append(Quoted(held, marginal))
                (cpu, byte, memory), before = less, after
                room_cpu -= part_cpu
                room_bytes -= part_bytes
                room_memory -= part_memory
                if len(chosen) == OFFER_MOST:
                    break
                continue
        failed.add(part)
        last_failed = part
    return chosen


def is_worth_sending(cost: CostFunction, load: Load, tasks: Sequence[Held], floor: float) -> bool:
    """Whether any single task costs more than a price: if not, none does at a higher price."""
    at, (cpu, byte, memory) = cost.at, load
    before = at(cpu, byte, memory)
    last: Load | None = None
    for held in tasks:
        part = held.task.load
        if part is last:
            continue
        last = part
        part_cpu, part_bytes, part_memory = part
        units = part_cpu + part_bytes
        if units <= 0:
            continue
        after = at(cpu - part_cpu, byte - part_bytes, memory - part_memory)
        if before == math.inf or (before - after) / units > floor:
            return True
    return False


def asks(
    cost: CostFunction, load: Load, tasks: Sequence[Task], price: Price, terms: "Taking"
) -> list[Ask]:
    """The tasks that a receiver takes, each with the price at which it takes all up to it.

    Args:
        cost: of the receiver.
        load: what it runs, and what it has accepted besides.
        tasks: that are offered.
        price: of the contract.
        terms: what was offered, and what limits it.
    """
    at, (cpu, byte, memory) = cost.at, load
    room_cpu, room_bytes, room_memory = terms.room
    highest, asked = float(price.highest), float(terms.offered)
    exact, before = terms.offered, at(cpu, byte, memory)
    chosen: list[Ask] = []
    failed: set[Load] = set()
    last_failed: Load | None = None
    for task in tasks:
        part = task.load
        if part is last_failed or (failed and part in failed):
            continue
        part_cpu, part_bytes, part_memory = part
        units = part_cpu + part_bytes
        fits = part_cpu <= room_cpu and part_bytes <= room_bytes and part_memory <= room_memory
        if units > 0 and fits:
            more = (cpu + part_cpu, byte + part_bytes, memory + part_memory)
            after = at(*more)
            marginal = math.inf if after == math.inf else (after - before) / units
            wanted = marginal + terms.margin
            if wanted <= highest:
                if wanted > asked:
                    asked, exact = wanted, min(_rounded_up(wanted), price.highest)
                chosen.append(Ask(task, exact, marginal))
                (cpu, byte, memory), before = more, after
                room_cpu -= part_cpu
                room_bytes -= part_bytes
                room_memory -= part_memory
                continue
        failed.add(part)
        last_failed = part
    return chosen


class Taking(NamedTuple):
    """What a receiver is asked for.

    Args:
        offered: the price, which it does not ask less than.
        margin: of the receiver.
        room: what the limits of the contract leave.
    """

    offered: Decimal
    margin: float
    room: Load


def deal(
    cost: CostFunction, load: Load, asked: Sequence[tuple[Held, Decimal]], margin: float
) -> Deal | None:
    """What a sender moves of what a receiver would take; None: nothing pays any more.

    A task that would cost less than the price that it makes is left out; the receiver then takes
    those behind it for no more than it has asked.

    Args:
        cost: of the sender.
        load: that it runs now.
        asked: tasks with the price that is asked for each, which never falls.
        margin: of the sender.
    """
    at, (cpu, byte, memory) = cost.at, load
    before = at(cpu, byte, memory)
    least, chosen = math.inf, list[Quoted]()
    price, last, value = Decimal(0), Decimal(-1), 0.0
    for held, ask in asked:
        if ask is not last:
            last, value = ask, float(ask)
        part = held.task.load
        units = part.cpu + part.bytes
        less = (cpu - part.cpu, byte - part.bytes, memory - part.memory)
        after = at(*less)
        marginal = math.inf if before == math.inf else (before - after) / units
        if min(least, marginal) < value + margin:
            continue
        chosen.append(Quoted(held, marginal))
        least, price = min(least, marginal), max(price, ask)
        (cpu, byte, memory), before = less, after
    return Deal(tuple(chosen), price) if chosen else None


def _rounded_up(cost: float) -> Decimal:
    """A cost as a price: the next one that is not below it. Exact: a float is a binary fraction."""
    return Decimal(math.ceil(cost * _STEPS)).scaleb(-12)
