"""Run of a scenario: loads change, participants misbehave, and the allocation is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.contracts.decisions import Decision
from pipeline.contracts.load import Load
from pipeline.contracts.messages import PartnerLost
from pipeline.contracts.simulation.chance import Chance
from pipeline.contracts.simulation.measures import gains, misallocated, own_load
from pipeline.contracts.simulation.misbehaving import flooding, lying
from pipeline.contracts.simulation.scenario import Loads, Scenario, federation
from pipeline.contracts.simulation.tally import CHANGE_MS
from pipeline.contracts.simulation.world import World
from pipeline.contracts.state import NEVER, Participant
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.ids import Millis

LONGEST_MS: Final = 7_200_000
"""Simulated time after which a run with constant loads ends in any case."""
QUIET_MS: Final = 120_000
"""A run with constant loads ends when nothing has moved for so long: twice the longest pause."""
LOSSY: Final = 5
"""How much longer it has to be quiet if messages are lost: partners may have to be asked again."""
SPIKE_MS: Final = 60_000
AWAY_MS: Final = 60_000
DETECTED_MS: Final = 5_000
"""How long a participant has been away when its partners find that it does not answer."""
CHANGED_PART: Final = 0.2
SPIKED_PART: Final = 0.02


@dataclass(frozen=True, slots=True)
class Sample:
    """State of a run at a time.

    Args:
        at_ms: since the beginning.
        misallocated: in per cent of the capacity.
        alone: the same, if each ran its own tasks.
        moves: until then, of all participants.
        ended: decisions until then to end stays.
        repeated: tasks until then that went to and fro; see `Tally`.
    """

    at_ms: int
    misallocated: float
    alone: float
    moves: int
    ended: int = 0
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a run.

    Args:
        samples: in the order of time; the first is before any move.
        participants: their number.
        messages: number of messages that were sent.
        moved_ms: when the last move was.
        worth: of each participant, what it has saved and earned by taking part, in parts of what
            one earns who runs nothing but others' tasks, at the fixed price; negative: it is worse
            off. Empty if that was not measured.
        states: of all participants at the end.
    """

    samples: tuple[Sample, ...]
    participants: int
    messages: int
    moved_ms: int
    worth: tuple[float, ...]
    states: tuple[Participant, ...]

    @property
    def moves_each(self) -> float:
        """Moves per participant."""
        return self.samples[-1].moves / self.participants

    @property
    def initial(self) -> float:
        """Misallocated capacity at the beginning, in per cent."""
        return self.samples[0].misallocated

    @property
    def final(self) -> float:
        """Misallocated capacity at the end, in per cent."""
        return self.samples[-1].misallocated


def run(
    scenario: Scenario,
    chance: Chance,
    *,
    for_ms: int | None = None,
    sample_ms: int | None = None,
    watch: Callable[[Decision], None] | None = None,
) -> Result:
    """Run a scenario.

    Args:
        scenario: what is run.
        chance: random numbers.
        for_ms: how long, in simulated time; None: until nothing moves any more, which varying loads
            never come to: ten minutes then.
        sample_ms: how often it is measured; None: before and after only, without worth.
        watch: called with each decision.
    """
    world = World(federation(scenario, chance), scenario.network, chance, watch)
    constant = scenario.loads is Loads.CONSTANT and not scenario.vanish
    if for_ms is None:
        for_ms = LONGEST_MS if constant else 600_000
    _misbehave(scenario, world, chance, for_ms)
    samples = [_sample(scenario, world)]
    saved = {one.me: 0.0 for one in world.states}
    changes = _Changes(scenario, world, chance)
    lossy = scenario.network.lost or scenario.network.doubled
    quiet_ms = (QUIET_MS * (LOSSY if lossy else 1)) if constant else NEVER
    step_ms = min(sample_ms or for_ms, for_ms if constant else CHANGE_MS)
    for until_ms in range(step_ms, for_ms + 1, step_ms):
        world.run_until(Millis(until_ms), quiet_ms)
        changes.apply(until_ms)
        if sample_ms is not None:
            samples.append(_sample(scenario, world))
            for party, gain in gains(world.states, scenario.cost).items():
                saved[party] += gain
        if constant and until_ms - world.tally.moved_ms > quiet_ms:
            break
    if sample_ms is None:
        samples.append(_sample(scenario, world))
    most = scenario.levels.fixed * scenario.threshold * (len(samples) - 1)
    worth = () if sample_ms is None else tuple(gain / most for gain in saved.values())
    return Result(
        tuple(samples),
        scenario.participants,
        world.messages,
        world.tally.moved_ms,
        worth,
        tuple(world.states),
    )


def _sample(scenario: Scenario, world: World) -> Sample:
    loads = [one.portfolio.load.units for one in world.states]
    own = [own_load(one).units for one in world.states]
    tally, most = world.tally, scenario.threshold
    found = misallocated(loads, most), misallocated(own, most)
    return Sample(world.now_ms, *found, tally.moves, tally.ended, tally.repeated)


class _Changes:
    """Loads that change, as the scenario says; who runs a task learns its load, and its origin."""

    def __init__(self, scenario: Scenario, world: World, chance: Chance) -> None:
        self._scenario, self._world, self._chance = scenario, world, chance
        self._first = {
            held.task.id: held.task.load
            for one in world.states
            if scenario.loads is not Loads.CONSTANT
            for held in one.portfolio.running
        }
        self._tasks: dict[PartyId, list[TaskId]] = {}
        for one in world.states:
            self._tasks[one.me] = [held.task.id for held in one.portfolio.running]
        self._spikes: dict[PartyId, int] = {}

    def apply(self, now_ms: int) -> None:
        """Change what changes at a time."""
        if self._scenario.loads is Loads.CONSTANT:
            return
        factors: dict[PartyId, float] = {}
        for party in self._tasks:
            if self._scenario.loads is Loads.VARYING:
                if self._chance.random() < CHANGED_PART:
                    factors[party] = min(2.0, max(0.2, self._chance.gauss(1.0, 0.2)))
            elif party in self._spikes:
                if now_ms >= self._spikes[party]:
                    del self._spikes[party]
                    factors[party] = 1.0
            elif self._chance.random() < SPIKED_PART:
                self._spikes[party] = now_ms + SPIKE_MS
                factors[party] = 3.0
        self._tell(factors, Millis(now_ms))

    def _tell(self, factors: dict[PartyId, float], now_ms: Millis) -> None:
        loads: dict[TaskId, Load] = {}
        for party, factor in factors.items():
            for task in self._tasks[party]:
                loads[task] = Load(*(part * factor for part in self._first[task]))
        self._world.change(loads, now_ms)


def _misbehave(scenario: Scenario, world: World, chance: Chance, for_ms: int) -> None:
    """Choose who misbehaves, and how."""
    for one in tuple(world.states):
        drawn = chance.random()
        if drawn < scenario.lie:
            world.replace_steps(one.me, lying)
        elif drawn < scenario.lie + scenario.flood:
            world.replace_steps(one.me, flooding)
        elif drawn < scenario.lie + scenario.flood + scenario.vanish:
            from_ms = Millis(int(chance.random() * for_ms / 2))
            world.leave(one.me, from_ms, Millis(from_ms + AWAY_MS))
            _detect(world, one, from_ms)


def _detect(world: World, gone: Participant, from_ms: Millis) -> None:
    """Both sides find that the other does not answer: partners soon, who was away afterwards."""
    partners: Sequence[PartyId] = sorted(
        {one.contract.seller for one in gone.buying.values()}
        | {one.contract.buyer for one in gone.selling.values()}
    )
    for partner in partners:
        world.happen(partner, PartnerLost(gone.me), Millis(from_ms + DETECTED_MS))
        world.happen(gone.me, PartnerLost(partner), Millis(from_ms + AWAY_MS))
