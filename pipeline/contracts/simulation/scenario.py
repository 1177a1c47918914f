"""Scenario of a simulation, and the federation that it describes."""

import math
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final

from pipeline.contracts.costs import Levels, QueueingCost
from pipeline.contracts.load import Load, Task
from pipeline.contracts.money import Currency
from pipeline.contracts.participant import participant
from pipeline.contracts.simulation.chance import Chance
from pipeline.contracts.simulation.graph import random_graph
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.state import Participant, Settings
from pipeline.contracts.terms import (
    Contract,
    ContractId,
    Kind,
    Limits,
    PartyId,
    Price,
    TaskId,
    TaskSet,
)
from pipeline.errors import InputError
from pipeline.ids import Millis

THRESHOLD: Final = 100
"""Load units of a resource that a participant wants to run at most."""
CAPACITY: Final = 125.0
"""Load units at which a resource is overloaded: the threshold is a utilisation of 0.8."""
_PLACES: Final = Decimal("1E-9")
_WHAT: Final = TaskSet(frozenset({"any"}))
_LIMITS: Final = Limits(10**9, 10**13, 10**15)
_ENDS: Final = Millis(10**13)


class Tasks(StrEnum):
    """The tasks of a scenario."""

    UNIT = "unit"
    """Tasks of one load unit, of the processor only."""
    SEVERAL = "several"
    """Tasks of 5 to 40 load units, in processor and bytes."""


class Loads(StrEnum):
    """How the loads of a scenario change."""

    CONSTANT = "constant"
    VARYING = "varying"
    """Each participant's load is multiplied anew every few seconds, by a factor around 1."""
    SPIKING = "spiking"
    """Now and then a participant's load triples for a minute."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A scenario.

    Args:
        participants: their number.
        contracts: how many partners each has at least.
        load: of all together, in parts of what they want to run at most.
        units: width of the price range, in load units; 0: fixed prices.
        spread: each price differs from the common one by up to this part.
        tasks: their kind.
        loads: how they change.
        network: what happens to messages.
        vanish: part of the participants that stops for a while, once.
        lie: part that accepts everything and then takes nothing.
        flood: part that sends an offer after each event.

    Raises:
        InputError: a number is outside of its range.
    """

    participants: int = 995
    contracts: int = 10
    load: float = 0.9
    units: int = 1
    spread: float = 0.0
    tasks: Tasks = Tasks.UNIT
    loads: Loads = Loads.CONSTANT
    network: Network = field(default_factory=Network)
    vanish: float = 0.0
    lie: float = 0.0
    flood: float = 0.0

    def __post_init__(self) -> None:
        network = self.network
        parts = (self.spread, self.vanish, self.lie, self.flood, network.lost, network.doubled)
        if not all(0 <= part < 1 for part in parts):
            raise InputError(
                "a part is not between 0 and 1", place="scenario", hint="1 itself is not possible."
            )
        if not 0 < self.load <= 100 or not 0 <= self.units < THRESHOLD:  # noqa: PLR2004 - of capacity
            raise InputError(
                f"load {self.load}, range {self.units}",
                place="scenario",
                hint=f"the load is above 0, the range below {THRESHOLD} units.",
            )

    @property
    def levels(self) -> Levels:
        """Cost function, load unit and threshold of every participant."""
        if self.tasks is Tasks.UNIT:
            return Levels(QueueingCost(Load(CAPACITY)), Load(1.0), THRESHOLD)
        cost = QueueingCost(Load(CAPACITY, CAPACITY))
        return Levels(cost, Load(0.5, 0.5), 2 * THRESHOLD)


def federation(scenario: Scenario, chance: Chance) -> list[Participant]:
    """The participants of a scenario: their first loads are exponentially distributed.

    Of equally cheap partners, those with few contracts are asked first.
    """
    count = scenario.participants
    pairs = random_graph(count, scenario.contracts, chance)
    degrees = Counter(one for pair in pairs for one in pair)
    parties = [PartyId(f"p{number}") for number in range(count)]
    levels = scenario.levels
    settings = Settings(levels.cost, levels.margin)
    contracts: list[list[tuple[int, Contract]]] = [[] for _ in parties]
    common = _price(scenario, 1.0)
    for pair in pairs:
        for buyer, seller in (pair, pair[::-1]):
            price = common
            if scenario.spread:
                price = _price(scenario, 1 + scenario.spread * (2 * chance.random() - 1))
            made = _contract(parties[buyer], parties[seller], price)
            contracts[buyer].append((degrees[seller], made))
            contracts[seller].append((degrees[buyer], made))
    found = []
    for number, units in enumerate(_first_loads(scenario, chance)):
        ordered = [made for _, made in sorted(contracts[number], key=lambda one: one[0])]
        tasks = _tasks(scenario, parties[number], units, chance)
        found.append(participant(parties[number], settings, tasks, ordered))
    return found


def _contract(buyer: PartyId, seller: PartyId, price: Price) -> Contract:
    name = ContractId(f"{buyer}-{seller}")
    return Contract(name, Kind.LOAD, buyer, seller, price, _WHAT, _LIMITS, Millis(0), _ENDS)


def _price(scenario: Scenario, factor: float) -> Price:
    """The price at which everyone stays at the threshold, times a factor."""
    levels = scenario.levels
    fixed = Decimal(levels.fixed * factor).quantize(_PLACES)
    span = Decimal(levels.delta(scenario.units)).quantize(_PLACES) if scenario.units else Decimal(0)
    return Price(Currency("EUR"), fixed, min(span, fixed))


def _first_loads(scenario: Scenario, chance: Chance) -> list[int]:
    drawn = [chance.expovariate(1.0) for _ in range(scenario.participants)]
    wanted = scenario.load * scenario.levels.threshold * scenario.participants
    factor, exact, given = wanted / math.fsum(drawn), 0.0, 0
    found = []
    for one in drawn:  # rounded so that the sum is what was wanted
        exact += one * factor
        found.append(round(exact) - given)
        given += found[-1]
    return found


_UNIT: Final = Load(1.0)


def _tasks(scenario: Scenario, me: PartyId, units: int, chance: Chance) -> list[Task]:
    if scenario.tasks is Tasks.UNIT:
        return [Task(TaskId(f"{me}.{number}"), me, _UNIT) for number in range(units)]
    found: list[Task] = []
    while units > 0:
        size = min(units, 5 + chance.randrange(36))
        cpu = size * chance.random()
        found.append(Task(TaskId(f"{me}.{len(found)}"), me, Load(cpu, size - cpu)))
        units -= size
    return found
