"""Simulated federations: what holds in every run."""

import math
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.contracts.decisions import Decision, What
from pipeline.contracts.simulation.graph import diameter, random_graph
from pipeline.contracts.simulation.measures import counted, misallocated, own_load, runs_once
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.run import LONGEST_MS, QUIET_MS, Result, run
from pipeline.contracts.simulation.scenario import THRESHOLD, Loads, Scenario, Tasks, federation
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.errors import InputError

SMALL = Scenario(participants=12, contracts=3)
BAD = Network(most_ms=1_500, lost=0.2, doubled=0.2)


def watched(scenario: Scenario, seed: int) -> tuple[Result, list[Decision]]:
    """A run with all of its decisions."""
    decisions: list[Decision] = []
    for_ms = 100_000 if scenario.flood else None
    found = run(scenario, random.Random(seed), for_ms=for_ms, watch=decisions.append)
    return found, decisions


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "scenario",
    [
        SMALL,
        replace(SMALL, load=1.1, units=3),
        replace(SMALL, spread=0.3),
        replace(SMALL, tasks=Tasks.SEVERAL),
        replace(SMALL, network=BAD),
        replace(SMALL, lie=0.2, flood=0.2),
    ],
    ids=["unit", "overloaded", "prices", "several", "bad network", "misbehaving"],
)
def test_every_move_pays_both_sides(scenario: Scenario, seed: int) -> None:
    """Prices lie in the range of the contract and, with both margins, between the costs.

    So each move lowers the total cost, and with constant loads none is undone.
    """
    found, decisions = watched(scenario, seed)
    margin = scenario.levels.margin
    prices = {
        key: one.contract.price for state in found.states for key, one in state.buying.items()
    }
    for one in decisions:
        assert one.what not in (What.RETURNED, What.RECALLED)
        if one.what in (What.MOVING, What.TAKEN):
            assert one.contract is not None
            assert one.lot.price is not None
            assert one.lot.least is not None
            price, value = prices[one.contract], float(one.lot.price)
            assert price.lowest <= one.lot.price <= price.highest
            gain = one.lot.least - value if one.what is What.MOVING else value - one.lot.least
            assert gain >= margin - 1e-9
    if not (scenario.lie or scenario.flood):
        assert found.final <= found.initial


@pytest.mark.parametrize("seed", range(4))
def test_messages_in_any_order_lost_or_doubled_leave_each_task_once(seed: int) -> None:
    """And end in the same kind of allocation."""
    found = run(replace(SMALL, network=BAD), random.Random(seed))
    assert runs_once(found.states)
    assert found.final < run(SMALL, random.Random(seed)).final + 3
    assert all(not one.endings for one in found.states)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("load", [0.75, 1.1])
def test_the_sufficient_range(load: float, seed: int) -> None:
    """Homogeneous participants, unit tasks, a range of delta_(M-1).

    Nobody is overloaded if the mean spare is above M-1 units; else nobody is more than M-1 units
    below the threshold.
    """
    pairs = random_graph(12, 2, random.Random(seed))
    most = diameter(12, pairs) - 1
    scenario = replace(SMALL, contracts=2, load=load, units=most)
    found = run(scenario, random.Random(seed))
    loads = [one.portfolio.load.units for one in found.states]
    if THRESHOLD * (1 - load) > most:
        assert max(loads) <= THRESHOLD
    else:
        assert min(loads) >= THRESHOLD - most


def test_a_run_repeats_by_its_seed() -> None:
    """Exactly."""
    scenario = replace(SMALL, network=BAD)
    one, other = (run(scenario, random.Random(5)) for _ in range(2))
    assert (one.samples, one.messages) == (other.samples, other.messages)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_worse_off_with_constant_loads(seed: int) -> None:
    """Each earns or saves, or has no part in it."""
    found = run(SMALL, random.Random(seed), sample_ms=20_000)
    assert len(found.worth) == SMALL.participants
    assert min(found.worth) > -1e-9
    assert max(found.worth) > 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("units", [0, 3])
@pytest.mark.parametrize("loads", [Loads.VARYING, Loads.SPIKING])
def test_changing_loads_need_few_moves_without_oscillation(
    loads: Loads, units: int, seed: int
) -> None:
    """A fifth of the loads changes every 15 s, for ten minutes: less than two moves a change.

    No task goes back to a partner from whom it came since the last change; nobody is worse off.
    """
    scenario = replace(SMALL, loads=loads, load=0.75, units=units)
    found = run(scenario, random.Random(seed), sample_ms=5_000)
    assert found.moves_each < 2 * 0.2 * 40
    assert found.samples[-1].repeated == 0
    assert min(found.worth) > -1e-9
    assert runs_once(found.states)


def test_no_cycle_with_constant_loads() -> None:
    """A run ends by itself, and no task comes to a participant that has had it before."""
    been: dict[TaskId, list[PartyId]] = {}

    def watch(one: Decision) -> None:
        if one.what is What.SENT:
            for task in one.lot.tasks:
                been.setdefault(task, [one.me]).append(one.partner)

    found = run(replace(SMALL, load=1.1, units=3), random.Random(3), watch=watch)
    assert found.moved_ms + QUIET_MS <= found.samples[-1].at_ms < LONGEST_MS
    assert been
    assert all(len(set(places)) == len(places) for places in been.values())


@settings(max_examples=15, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(Tasks),
    st.integers(0, 5),
    st.floats(0.5, 1.5),
    st.floats(0, 0.3),
)
def test_nobody_accepts_at_a_loss_or_beyond_capacity(
    seed: int, tasks: Tasks, units: int, load: float, spread: float
) -> None:
    """Whatever the federation: total cost never rises, and no receiver is overloaded by a move."""
    scenario = Scenario(6, 2, load, units, spread, tasks)
    taken: list[Decision] = []

    def watch(one: Decision) -> None:
        if one.what in (What.TAKEN, What.ACCEPTED):
            taken.append(one)

    found = run(scenario, random.Random(seed), watch=watch)
    for one in taken:
        assert one.lot.price is not None
        assert one.lot.least is not None
        assert one.lot.least < float(one.lot.price) < math.inf
    cost = scenario.cost
    before = sum(counted(cost, own_load(one)) for one in found.states)
    assert sum(counted(cost, one.portfolio.load) for one in found.states) <= before + 1e-6


def test_several_tasks_are_as_many_and_as_large_as_is_said() -> None:
    """3 to 8 of about 5 to 40 units; all together the load that is wanted."""
    scenario = Scenario(200, 3, 0.9, tasks=Tasks.SEVERAL)
    found = federation(scenario, random.Random(1))
    sizes = [held.task.load.units for one in found for held in one.portfolio.running]
    assert {len(one.portfolio.running) for one in found} == set(range(3, 9))
    assert 4.5 < min(sizes) < max(sizes) < 44
    assert sum(sizes) == pytest.approx(0.9 * scenario.threshold * 200)


def test_who_vanishes_is_replaced_and_comes_back() -> None:
    """Each task runs once afterwards."""
    scenario = replace(SMALL, vanish=0.3)
    lost = Counter[What]()
    found = run(scenario, random.Random(2), watch=lambda one: lost.update([one.what]))
    assert lost[What.LOST] > 0
    assert runs_once(found.states)


def test_misallocated_is_the_lower_of_excess_and_spare() -> None:
    """In per cent of the capacity."""
    found = run(replace(SMALL, load=1.1), random.Random(1))
    loads = [one.portfolio.load.units for one in found.states]
    excess = sum(max(0.0, one - 100) for one in loads)
    spare = sum(max(0.0, 100 - one) for one in loads)
    assert misallocated(loads, 100) == pytest.approx(min(excess, spare) / 12)
    assert found.final == misallocated(loads, 100)


@pytest.mark.parametrize(("count", "least"), [(1, 1), (5, 5), (5, 0)])
def test_an_impossible_graph_is_refused(count: int, least: int) -> None:
    """With words."""
    with pytest.raises(InputError, match="cannot have"):
        random_graph(count, least, random.Random(1))


def test_a_graph_has_enough_partners_and_is_connected() -> None:
    """A tree with 1."""
    tree = random_graph(40, 1, random.Random(1))
    assert len(tree) == 39
    degrees = Counter(one for pair in random_graph(40, 5, random.Random(1)) for one in pair)
    assert min(degrees.values()) >= 5


@pytest.mark.parametrize("change", [{"load": 0.0}, {"lie": 1.0}, {"units": 100}])
def test_a_wrong_scenario_is_refused(change: dict[str, float]) -> None:
    """With words."""
    with pytest.raises(InputError, match="scenario"):
        Scenario(**change)  # type: ignore[arg-type] # wrong on purpose
