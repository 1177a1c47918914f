"""Offer rule: who offers and accepts what, and at which price."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.costs import Levels, QueueingCost, marginal_cost
from pipeline.contracts.load import NO_LOAD, Load, Task
from pipeline.contracts.money import Currency
from pipeline.contracts.offers import Taking, asks, deal, is_worth_sending, worth_sending
from pipeline.contracts.portfolio import Groups, Held, grouped, total
from pipeline.contracts.terms import PartyId, Price, TaskId
from pipeline.errors import InputError

COST = QueueingCost(Load(125.0, 125.0, 1000.0))
LEVELS = Levels(COST, Load(0.5, 0.5), 200)
MARGIN = LEVELS.margin
FIXED = Decimal(LEVELS.fixed).quantize(Decimal("1E-9"))
PRICE = Price(Currency("EUR"), FIXED, Decimal(LEVELS.delta(3)).quantize(Decimal("1E-9")))
ROOM = Load(math.inf, math.inf, math.inf)
A = PartyId("a")
LOADS = st.builds(Load, st.floats(0, 40), st.floats(0, 40), st.floats(0, 100))
TASKS = st.lists(LOADS, max_size=12).map(
    lambda loads: [Task(TaskId(f"a.{at}"), A, load) for at, load in enumerate(loads)]
)


def held(tasks: list[Task]) -> Groups:
    """Tasks that run where they belong."""
    return grouped(tuple(Held(task, None) for task in tasks))


def taking(offered: Decimal, room: Load = ROOM) -> Taking:
    """A receiver that may take every task."""
    return Taking(offered, MARGIN, room, lambda _task: True)


@given(TASKS, LOADS)
def test_a_move_gains_on_both_sides(tasks: list[Task], other: Load) -> None:
    """Total cost falls by both margins of each load unit; the price lies in the range."""
    load = total(tasks)
    offered = worth_sending(COST, load, held(tasks), float(PRICE.lowest) + MARGIN, ROOM)
    candidates = [one.task for one in offered.held]
    asked = asks(COST, other, candidates, PRICE, taking(PRICE.lowest))
    found = deal(COST, load, [(Held(one.task, None), one.price) for one in asked], MARGIN)
    if found is None:
        return
    moved = total(one.held.task for one in found.tasks)
    assert PRICE.lowest <= found.price <= PRICE.highest
    paid = float(found.price) * moved.units
    after = other.plus(moved)
    assert COST.at(*after) < math.inf
    tolerance = 1e-6 * (1 + paid)
    assert COST.at(*after) - COST.at(*other) + MARGIN * moved.units <= paid + tolerance
    saved = COST.at(*load) - COST.at(*load.minus(moved))
    assert math.isnan(saved) or saved >= paid + MARGIN * moved.units - tolerance


def test_an_overloaded_sender_offers_everything() -> None:
    """Also what it could keep at the price: the receiver chooses, and the sender chooses again."""
    tasks = [Task(TaskId(f"a.{at}"), A, Load(30.0)) for at in range(5)]
    assert total(tasks).cpu > 125
    assert len(worth_sending(COST, total(tasks), held(tasks), 1e6, ROOM).held) == 5
    assert is_worth_sending(COST, total(tasks), held(tasks), 1e6)


@given(TASKS, st.floats(0, 1))
def test_nothing_is_offered_above_the_highest_marginal_cost(
    tasks: list[Task], floor: float
) -> None:
    """If no single task is worth a price, no set of tasks is."""
    load = total(tasks)
    chosen = worth_sending(COST, load, held(tasks), floor, ROOM)
    assert bool(chosen.held) == is_worth_sending(COST, load, held(tasks), floor)


@given(
    st.lists(st.sampled_from([Load(1.0), Load(0.5, 2.0), Load(7.0, 0.0, 3.0)]), max_size=60),
    LOADS,
    st.floats(0, 1),
    st.floats(5, 60),
)
def test_groups_are_chosen_as_their_tasks_one_by_one(
    loads: list[Load], more: Load, floor: float, room: float
) -> None:
    """Bisection finds the same tasks, first and last marginal cost, and paying load units."""
    tasks = [Task(TaskId(f"a.{at}"), A, load) for at, load in enumerate(loads)]
    load, left = total(tasks).plus(more), Load(room, room, room)
    together = worth_sending(COST, load, held(tasks), floor, left)
    each = Groups(held(tasks).held, tuple((at, at + 1) for at in range(len(tasks))))
    single = worth_sending(COST, load, each, floor, left)
    assert together.held == single.held
    assert together[1:] == pytest.approx(single[1:])


def test_an_overloaded_receiver_refuses() -> None:
    """At any price."""
    task = Task(TaskId("a.1"), A, Load(1.0))
    assert asks(COST, Load(125.0), [task], PRICE, taking(PRICE.fixed)) == []


def test_limits_of_the_contract_are_kept() -> None:
    """On both sides, and smaller tasks still fit."""
    tasks = [Task(TaskId(f"a.{at}"), A, Load(size)) for at, size in enumerate((60.0, 30.0, 40.0))]
    room = Load(75.0, 10.0, 10.0)
    sent = worth_sending(COST, Load(130.0), held(tasks), 0.0, room)
    assert [one.task.id for one in sent.held] == ["a.0"]
    taken = asks(COST, NO_LOAD, tasks[1:], PRICE, taking(PRICE.lowest, room))
    assert [one.task.id for one in taken] == ["a.1", "a.2"]


def test_the_price_is_the_marginal_cost_of_the_receiver_inside_the_range() -> None:
    """At the lowest price as long as that is more than its cost; then its cost with the margin."""
    cost, unit = QueueingCost(Load(125.0)), Load(1.0)
    levels = Levels(cost, unit, 100)
    price = Price(
        Currency("EUR"),
        Decimal(levels.fixed).quantize(Decimal("1E-9")),
        Decimal(levels.delta(3)).quantize(Decimal("1E-9")),
    )
    tasks = [Task(TaskId(f"a.{at}"), A, unit) for at in range(20)]
    terms = Taking(price.lowest, levels.margin, ROOM, lambda _task: True)
    found = asks(cost, Load(95.0), tasks, price, terms)
    assert len(found) == 5  # up to the threshold
    assert [one.price for one in found[:2]] == [price.lowest] * 2
    for at, one in enumerate(found[2:], start=2):
        expected = marginal_cost(cost, Load(95.0 + at), unit) + levels.margin
        assert float(one.price) == pytest.approx(expected, abs=1e-11)
        assert price.lowest < one.price <= price.highest


@pytest.mark.parametrize("load", [Load(-1.0), Load(math.nan), Load(0.0, math.inf)])
def test_a_load_that_is_none_is_refused(load: Load) -> None:
    """Negative, not a number, infinite."""
    with pytest.raises(InputError, match=r"task a\.1"):
        Task(TaskId("a.1"), A, load)


@given(st.integers(10, 120), st.integers(1, 9))
def test_the_margin_is_a_tenth_of_the_least_difference(threshold: int, units: int) -> None:
    """delta_k rises with k, and the margin is below half of delta_1."""
    levels = Levels(QueueingCost(Load(125.0)), Load(1.0), threshold)
    assert 0 < 2 * levels.margin < levels.delta(1)
    assert levels.delta(units) < levels.delta(units + 1) or units + 1 > threshold
