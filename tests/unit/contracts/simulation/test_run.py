"""Simulated federations: what holds in every run."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from pipeline.contracts.decisions import Decision, What
from pipeline.contracts.simulation.graph import diameter, random_graph
from pipeline.contracts.simulation.measures import misallocated, runs_once
from pipeline.contracts.simulation.network import Network
from pipeline.contracts.simulation.run import Result, run
from pipeline.contracts.simulation.scenario import THRESHOLD, Loads, Scenario, Tasks
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


def test_varying_loads_need_few_moves() -> None:
    """A fifth of the loads changes every 15 s, for ten minutes: less than two moves a change."""
    scenario = replace(SMALL, loads=Loads.VARYING, load=0.75, units=3)
    found = run(scenario, random.Random(1), sample_ms=60_000)
    assert found.moves_each < 2 * 0.2 * 40
    assert runs_once(found.states)


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
    excess = sum(max(0.0, one.portfolio.load.units - 100) for one in found.states)
    spare = sum(max(0.0, 100 - one.portfolio.load.units) for one in found.states)
    assert misallocated(found.states, 100) == pytest.approx(min(excess, spare) / 12)


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
