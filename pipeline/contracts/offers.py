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
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from pipeline.contracts.costs import CostFunction
from pipeline.contracts.load import Load, Task
from pipeline.contracts.portfolio import Groups, Held
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


class Selection(NamedTuple):
    """The tasks that a sender offers.

    Args:
        held: the tasks; none: nothing is worth it.
        most: the marginal cost of the first one.
        least: the marginal cost of the last one.
        paying: load units of those that cost more than the price; the others are offered since
            the sender is overloaded.
    """

    held: tuple[Held, ...]
    most: float
    least: float
    paying: float


def worth_sending(
    cost: CostFunction, load: Load, tasks: Groups, floor: float, room: Load
) -> Selection:
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
    if all(stop - start == 1 for start, stop in tasks.ranges):
        return _singly(cost, load, tasks, floor, room)
    overloaded = cost.at(*load) == math.inf
    chosen: list[Held] = []
    most = least = paying = 0.0
    failed: Load | None = None
    for start, stop in tasks.ranges:
        part = tasks.held[start].task.load
        if part is failed:
            continue
        fitting = _fitting(part, min(stop - start, OFFER_MOST - len(chosen)), room)
        pays, marginal = _paying(cost, load, part, fitting, floor)
        count = fitting if overloaded else pays
        if count < stop - start:
            failed = part
        if count:
            most = most if chosen else _saved(cost, load, part, 1)
            least = marginal if count == pays else _saved(cost, load, part, count)
            chosen += tasks.held[start : start + count]
            paying += pays * part.units
            load, room = _without(load, part, count), _without(room, part, count)
    return Selection(tuple(chosen), most, least, paying)


def _singly(cost: CostFunction, load: Load, tasks: Groups, floor: float, room: Load) -> Selection:
    """The same, for groups of one task each: what remains is computed once for each task."""
    at, (cpu, byte, memory) = cost.at, load
    before = at(cpu, byte, memory)
    overloaded = before == math.inf
    chosen: list[Held] = []
    most = least = paying = 0.0
    for start, _ in tasks.ranges:
        held = tasks.held[start]
        part = held.task.load
        part_cpu, part_bytes, part_memory = part
        units = part_cpu + part_bytes
        if units <= 0 or not part.fits(room):
            continue
        less = (cpu - part_cpu, byte - part_bytes, memory - part_memory)
        after = at(*less)
        marginal = math.inf if before == math.inf else (before - after) / units
        if marginal > floor:
            paying += units
        elif not overloaded:
            continue
        least = marginal
        most = most if chosen else least
        chosen.append(held)
        (cpu, byte, memory), before = less, after
        room = room.minus(part)
        if len(chosen) == OFFER_MOST:
            break
    return Selection(tuple(chosen), most, least, paying)


def _fitting(part: Load, most: int, room: Load) -> int:
    """How many tasks of one load there is room for; none of a task without load units."""
    if part.cpu + part.bytes <= 0:
        return 0
    for need, left in zip(part, room, strict=True):
        if need * most > left:
            most = int(left // need)
    return most


def _paying(
    cost: CostFunction, load: Load, part: Load, most: int, floor: float
) -> tuple[int, float]:
    """How many tasks of one load cost more than a price, and what the last of them costs.

    Bisection: each one costs less than the one before.
    """
    low, high, probe, marginal = 0, most, most, 0.0
    while low < high:
        found = _saved(cost, load, part, probe)
        if found > floor:
            low, marginal = probe, found
        else:
            high = probe - 1
        probe = (low + high + 1) // 2
    return low, marginal


def _saved(cost: CostFunction, load: Load, part: Load, count: int) -> float:
    """What each load unit of a task costs that is the last of so many of one load."""
    cpu, byte, memory = load
    part_cpu, part_bytes, part_memory = part
    more = count - 1
    before = cost.at(cpu - more * part_cpu, byte - more * part_bytes, memory - more * part_memory)
    if before == math.inf:
        return math.inf
    after = cost.at(cpu - count * part_cpu, byte - count * part_bytes, memory - count * part_memory)
    return (before - after) / (part_cpu + part_bytes)


def _without(load: Load, part: Load, count: int) -> Load:
    """A load without so many of one load; not below 0."""
    return load.minus(part if count == 1 else Load(*(one * count for one in part)))


def is_worth_sending(cost: CostFunction, load: Load, tasks: Groups, floor: float) -> bool:
    """Whether any single task costs more than a price: if not, none does at a higher price."""
    last: Load | None = None
    for start, _ in tasks.ranges:
        part = tasks.held[start].task.load
        if part is last or part.units <= 0:
            continue
        last = part
        if _saved(cost, load, part, 1) > floor:
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
    failed: Load | None = None
    for task in tasks:
        part = task.load
        if part is failed:
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
                if not terms.may_take(task):
                    continue
                if wanted > asked:
                    asked, exact = wanted, min(_rounded_up(wanted), price.highest)
                chosen.append(Ask(task, exact, marginal))
                (cpu, byte, memory), before = more, after
                room_cpu -= part_cpu
                room_bytes -= part_bytes
                room_memory -= part_memory
                continue
        failed = part
    return chosen


class Taking(NamedTuple):
    """What a receiver is asked for.

    Args:
        offered: the price, which it does not ask less than.
        margin: of the receiver.
        room: what the limits of the contract leave.
        may_take: whether a task may run here at all; asked of those only that would pay.
    """

    offered: Decimal
    margin: float
    room: Load
    may_take: Callable[[Task], bool]


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
