"""Demonstration: three participants, loads that change, and why each decision was made.

The picture is that of Figure 2 in: Balazinska, Balakrishnan, Stonebraker: Load Management and High
Availability in the Medusa Distributed Stream Processing System, SIGMOD 2004: the load of three
nodes over time, with annotated events. Loads, prices and times are our own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from typing import Final

from pipeline.contracts.costs import Levels, QueueingCost
from pipeline.contracts.decisions import Decision
from pipeline.contracts.load import Load, Task
from pipeline.contracts.messages import PartnerLost
from pipeline.contracts.money import Currency
from pipeline.contracts.participant import participant
from pipeline.contracts.simulation.chance import Chance
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.picture import Line, Mark, picture
from pipeline.contracts.simulation.world import World
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
from pipeline.ids import Millis

TASKS: Final = 20
LEVELS: Final = Levels(QueueingCost(Load(125.0)), Load(5.0), TASKS)
ALICE, BOB, CAROL = PartyId("alice"), PartyId("bob"), PartyId("carol")
PARTIES: Final = (ALICE, BOB, CAROL)
DEAREST: Final = CAROL
"""Its fixed price is higher than that of the others, by `DEARER`."""
DEARER: Final = Decimal("1.05")
ENDS_S: Final = 420
_PLACES: Final = Decimal("1E-6")


@dataclass(frozen=True, slots=True)
class Scene:
    """Something that happens to a participant.

    Args:
        at_s: when.
        text: what, for people.
        party: to whom.
        units: its own load from then on.
        lost: whether it is found lost by its partners and finds them lost.
    """

    at_s: int
    text: str
    party: PartyId
    units: float = 0.0
    lost: bool = False


SCENES: Final = (
    Scene(60, "the load of alice doubles: it is overloaded", ALICE, 140),
    Scene(
        120, "the load of bob rises: what it runs for alice costs it more than it is paid", BOB, 80
    ),
    Scene(200, "the load of alice falls: its own machine is cheaper than any partner", ALICE, 60),
    Scene(260, "the load of bob rises beyond its capacity", BOB, 150),
    Scene(340, "carol is lost: each runs its own tasks again", CAROL, lost=True),
)
_FIRST: Final[Mapping[PartyId, float]] = {ALICE: 70.0, BOB: 50.0, CAROL: 40.0}


@dataclass(frozen=True, slots=True)
class Chapter:
    """What followed from a scene.

    Args:
        number: of the scene, from 1; 0: the beginning.
        at_s: when it began.
        text: what happened.
        decisions: that followed until the next one.
        loads: load units of each participant at the end.
    """

    number: int
    at_s: int
    text: str
    decisions: tuple[Decision, ...]
    loads: Mapping[PartyId, float]


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Chapters, and the load of each participant, each second."""

    chapters: tuple[Chapter, ...]
    lines: tuple[Line, ...]


def demonstrate(chance: Chance) -> Demonstration:
    """Run all scenes; the random numbers are the latencies of messages only."""
    decisions: list[Decision] = []
    world = World(_federation(), Network(), chance, decisions.append)
    points: dict[PartyId, list[tuple[float, float]]] = {party: [] for party in PARTIES}
    chapters: list[Chapter] = []
    scenes = (None, *SCENES)
    ends = (*(one.at_s for one in SCENES), ENDS_S)
    for number, (scene, end_s) in enumerate(zip(scenes, ends, strict=True)):
        begun = len(decisions)
        start_s = 0 if scene is None else scene.at_s
        if scene is not None:
            _happen(world, scene)
        for now_s in range(start_s + 1, end_s + 1):
            world.run_until(Millis(now_s * 1_000))
            for state in world.states:
                points[state.me].append((float(now_s), state.portfolio.load.units))
        text = "every participant runs its own tasks" if scene is None else scene.text
        loads = {state.me: state.portfolio.load.units for state in world.states}
        chapters.append(Chapter(number, start_s, text, tuple(decisions[begun:]), loads))
    lines = tuple(Line(party, tuple(found)) for party, found in points.items())
    return Demonstration(tuple(chapters), lines)


def _happen(world: World, scene: Scene) -> None:
    now = Millis(scene.at_s * 1_000)
    if scene.lost:
        for other in PARTIES:
            if other != scene.party:
                world.happen(other, PartnerLost(scene.party), now)
                world.happen(scene.party, PartnerLost(other), now)
        return
    each = Load(scene.units / TASKS)
    world.change(dict.fromkeys(_names(scene.party), each), now)


def _names(party: PartyId) -> list[TaskId]:
    return [TaskId(f"{party}.{number}") for number in range(1, TASKS + 1)]


def _federation() -> Sequence[Participant]:
    contracts = [
        Contract(
            ContractId(f"{buyer}-{seller}"),
            Kind.LOAD,
            buyer,
            seller,
            _price(seller),
            TaskSet(frozenset({"any"})),
            Limits(150, 10**9, 10**12),
            Millis(0),
            Millis(10**12),
        )
        for buyer, seller in permutations(PARTIES, 2)
    ]
    return [
        participant(
            party,
            Settings(LEVELS.cost, LEVELS.margin),
            [Task(name, party, Load(units / TASKS)) for name in _names(party)],
            [one for one in contracts if party in (one.buyer, one.seller)],
        )
        for party, units in _FIRST.items()
    ]


def _price(seller: PartyId) -> Price:
    factor = DEARER if seller == DEAREST else Decimal(1)
    fixed = (Decimal(LEVELS.fixed) * factor).quantize(_PLACES)
    return Price(Currency("EUR"), fixed, Decimal(LEVELS.delta(1)).quantize(_PLACES))


def explained(found: Demonstration) -> str:
    """The demonstration as text: what happens, and each decision with its reasons."""
    lines: list[str] = []
    for chapter in found.chapters:
        lines.append(f"{chapter.number}. {chapter.at_s} s: {chapter.text}")
        lines += [
            f"   {one.at_ms / 1_000:.1f} s  {one.explained()}" for one in chapter.decisions
        ] or ["   no participant gains by a move"]
        loads = ", ".join(f"{party} {units:.0f}" for party, units in chapter.loads.items())
        lines.append(f"   load units then: {loads}")
    return "\n".join(lines)


def drawn(found: Demonstration) -> str:
    """Load units of each participant over time, with the numbers of the scenes, as SVG."""
    threshold = Line("threshold", ((0.0, float(TASKS * 5)), (float(ENDS_S), float(TASKS * 5))))
    marks = [Mark(float(one.at_s), str(one.number)) for one in found.chapters if one.number]
    return picture("load units", "seconds", (*found.lines, threshold), marks)
