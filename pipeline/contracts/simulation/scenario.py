"""Scenario of a simulation, and the federation that it describes."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
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
UTILISATION: Final = 0.8
"""Part of the capacity that is the threshold."""
LEAST_TASKS, MOST_TASKS = 3, 8
LEAST_SIZE, MOST_SIZE = 5, 40
_SEVERAL_MEAN: Final = (LEAST_TASKS + MOST_TASKS) * (LEAST_SIZE + MOST_SIZE) / 4
_PLACES: Final = Decimal("1E-9")
_WHAT: Final = TaskSet(frozenset({"any"}))
_LIMITS: Final = Limits(10**9, 10**13, 10**15)
_ENDS: Final = Millis(10**13)


class Tasks(StrEnum):
    """The tasks of a scenario."""

    UNIT = "unit"
    """Tasks of one load unit, of the processor only."""
    SEVERAL = "several"
    """3 to 8 tasks of about 5 to 40 load units each, in processor and bytes."""


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
    def threshold(self) -> int:
        """Load units that a participant wants to run at most: with several tasks, of both kinds."""
        return THRESHOLD if self.tasks is Tasks.UNIT else round(_SEVERAL_MEAN / self.load)

    @property
    def cost(self) -> QueueingCost:
        """Cost function of every participant."""
        capacity = self.threshold / UTILISATION
        several = self.tasks is Tasks.SEVERAL
        return QueueingCost(Load(capacity / 2, capacity / 2) if several else Load(capacity))

    @property
    def levels(self) -> Levels:
        """Cost function, load unit and threshold of every participant."""
        unit = Load(0.5, 0.5) if self.tasks is Tasks.SEVERAL else Load(1.0)
        return Levels(self.cost, unit, self.threshold)


def federation(scenario: Scenario, chance: Chance) -> list[Participant]:
    """The participants of a scenario.

    Of equally cheap partners, those with few contracts are asked first. Loads of unit tasks are
    exponentially distributed.
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
    draw = _unit_tasks if scenario.tasks is Tasks.UNIT else _several_tasks
    found = []
    for number, tasks in enumerate(draw(scenario, parties, chance)):
        ordered = [made for _, made in sorted(contracts[number], key=lambda one: one[0])]
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


_UNIT: Final = Load(1.0)


def _unit_tasks(
    scenario: Scenario, parties: Sequence[PartyId], chance: Chance
) -> Iterator[list[Task]]:
    drawn = [chance.expovariate(1.0) for _ in parties]
    wanted = scenario.load * scenario.threshold * len(parties)
    factor, exact, given = wanted / math.fsum(drawn), 0.0, 0
    for me, one in zip(parties, drawn, strict=True):  # rounded so that the sum is what was wanted
        exact += one * factor
        units = round(exact) - given
        given += units
        yield [Task(TaskId(f"{me}.{number}"), me, _UNIT) for number in range(units)]


def _several_tasks(
    scenario: Scenario, parties: Sequence[PartyId], chance: Chance
) -> Iterator[list[Task]]:
    span = MOST_SIZE - LEAST_SIZE
    counts = [LEAST_TASKS + chance.randrange(MOST_TASKS - LEAST_TASKS + 1) for _ in parties]
    sizes = [[LEAST_SIZE + span * chance.random() for _ in range(count)] for count in counts]
    wanted = scenario.load * scenario.threshold * len(parties)
    factor = wanted / math.fsum(size for mine in sizes for size in mine)  # near to 1
    for me, mine in zip(parties, sizes, strict=True):
        cpus = [size * factor * chance.random() for size in mine]
        loads = [Load(cpu, size * factor - cpu) for cpu, size in zip(cpus, mine, strict=True)]
        yield [Task(TaskId(f"{me}.{number}"), me, load) for number, load in enumerate(loads)]
