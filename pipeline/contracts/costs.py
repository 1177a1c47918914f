"""Cost functions: convex in the load of a participant; marginal costs in load units.

Costs are floats, in money per second of one currency; prices are decimals. A cost is compared with
a price as a float: the error of that conversion is below 10^-15 of the price, and no decision
depends on it, since the margin of a decision is at least `MARGIN_LEAST` of the price.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pipeline.contracts.load import Load
from pipeline.errors import InputError

MARGIN_SHARE: Final = 0.1
"""Margin of each decision, in parts of delta_1, the difference between the marginal costs of two
successive load units. With half of delta_1 or more, participants whose loads differ by two units
could no longer trade, since the margin counts on both sides."""
MARGIN_LEAST: Final = 1e-9


class CostFunction(Protocol):
    """What a load costs a participant per second.

    Convex, and rising in each resource: the proofs of the mechanism need no more. Infinite where
    the participant is overloaded.
    """

    def at(self, cpu: float, byte: float, memory: float, /) -> float:
        """The cost of a load, given by its parts: objects would cost more than the formula."""
        ...


@dataclass(frozen=True, slots=True)
class QueueingCost:
    """Sum of rho / (1 - rho) over the resources: the length of a queue (M/M/1).

    The cost function of the prototype of the bounded-price mechanism, with memory as a third
    resource. From a utilisation of 1 on the formula would turn negative, so there it is infinite.

    Args:
        capacity: of the participant; a resource with capacity 0 is not counted.
        value: money per second for each that waits.
    """

    capacity: Load
    value: float = 1.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(part) and part >= 0 for part in self.capacity):
            raise InputError(
                f"the capacity is {self.capacity}",
                place="cost function",
                hint="each part is a finite number that is not negative.",
            )
        if not self.capacity.units or not (math.isfinite(self.value) and self.value > 0):
            raise InputError(
                "capacity or value is 0",
                place="cost function",
                hint="give a capacity in processor or bytes, and a value above 0.",
            )

    def at(self, cpu: float, byte: float, memory: float, /) -> float:
        """The cost of a load: a term of each resource that has a capacity."""
        most_cpu, most_bytes, most_memory = self.capacity
        total = 0.0
        if most_cpu:
            if cpu >= most_cpu:
                return math.inf
            total = cpu / (most_cpu - cpu)
        if most_bytes:
            if byte >= most_bytes:
                return math.inf
            total += byte / (most_bytes - byte)
        if most_memory:
            if memory >= most_memory:
                return math.inf
            total += memory / (most_memory - memory)
        return total * self.value


@dataclass(frozen=True, slots=True)
class PerPartCost:
    """Sum of one convex function of each part of the load, given as Python functions.

    Args:
        cpu: cost of load units of the processor; convex, rising, infinite where overloaded.
        byte: the same for load units of bytes.
        memory: the same for bytes of memory.
    """

    cpu: Callable[[float], float]
    byte: Callable[[float], float] = lambda _units: 0.0
    memory: Callable[[float], float] = lambda _bytes: 0.0

    def at(self, cpu: float, byte: float, memory: float, /) -> float:
        """The sum of the three."""
        return self.cpu(cpu) + self.byte(byte) + self.memory(memory)


def marginal_cost(cost: CostFunction, without: Load, task: Load) -> float:
    """Cost of a task beside a load, for each of its load units.

    Infinite if the load with the task is an overload; 0 for a task without load units.
    """
    if task.units <= 0:
        return 0.0
    after = cost.at(*without.plus(task))
    return math.inf if after == math.inf else (after - cost.at(*without)) / task.units


@dataclass(frozen=True, slots=True)
class Levels:
    """Prices at which a participant with unit tasks stays at a threshold.

    Args:
        fixed: the fixed price: one unit above the threshold is worth selling at it, one unit below
            is worth accepting.
        unit: the load unit.
        cost: the cost function.
        threshold: number of units that the participant wants to run at most.
    """

    cost: CostFunction
    unit: Load
    threshold: int

    @property
    def fixed(self) -> float:
        """The fixed price: between the marginal costs of the last unit up to it and the next."""
        return self._between(self.threshold)

    def delta(self, units: int) -> float:
        """delta_k: how much lower the price is at which the threshold is k units lower."""
        return self.fixed - self._between(self.threshold - units)

    @property
    def margin(self) -> float:
        """The margin of decisions, `MARGIN_SHARE` of delta_1."""
        return MARGIN_SHARE * self.delta(1)

    def _between(self, count: int) -> float:
        last, following = (self._marginal(count + more) for more in (0, 1))
        return (last + following) / 2

    def _marginal(self, count: int) -> float:
        without = Load(*(part * (count - 1) for part in self.unit))
        return marginal_cost(self.cost, without, self.unit)
