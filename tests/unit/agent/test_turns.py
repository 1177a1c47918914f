"""The order in which followers build their states."""

import threading
from dataclasses import replace

import pytest

from pipeline.agent.effects import Following
from pipeline.agent.turns import Rank, Turns, rank_of
from pipeline.ids import FragmentId, FragmentName
from pipeline.priority import Priority
from tests.unit.agent.performers import DEPLOYED, NETWORK, PLAN
from tests.unit.agent.test_followers import until
from tests.unit.catalog.support import NODE1, NODE2
from tests.unit.catalog.test_transfers import move, owned


def never() -> bool:
    """A wait without an end."""
    return False


def rank(name: str, priority: Priority = Priority.NORMAL, *, moves: bool = True) -> Rank:
    """Of a follower."""
    return priority.order, not moves, FragmentId(NETWORK, FragmentName(name))


class Waiting:
    """One that waits for a permit, on a thread of its own."""

    def __init__(self, turns: Turns, rank: Rank, given: list[Rank]) -> None:
        self.is_over = False
        self._turns, self._rank, self._given = turns, rank, given
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        until(lambda: rank in turns._waiting or rank in given, "it waits")

    def _run(self) -> None:
        if self._turns.take(self._rank, lambda: self.is_over):
            self._given.append(self._rank)


def test_of_those_that_wait_the_highest_priority_is_the_next() -> None:
    """Of one priority moves come before secondaries, then names decide; not who came first."""
    turns, given = Turns(1), list[Rank]()
    assert turns.take(rank("first", Priority.LOW), never)
    order = [
        rank("d", Priority.HIGH, moves=False),
        rank("a"),
        rank("c"),
        rank("b", moves=False),
        rank("e", Priority.LOW),
    ]
    waiting = [Waiting(turns, one, given) for one in reversed(order)]
    for number in range(1, len(order) + 1):
        turns.give_back()
        until(lambda at=number: len(given) == at, "a permit")  # type: ignore[misc]
    assert given == order
    for one in waiting:
        one.thread.join(1)


def test_one_that_is_over_lets_others_by() -> None:
    """It gets no permit; one that waits behind it does."""
    turns, given = Turns(1), list[Rank]()
    assert turns.take(rank("first"), never)
    over, other = (Waiting(turns, rank(name), given) for name in ("a", "b"))
    over.is_over = True
    turns.give_back()
    until(lambda: not over.thread.is_alive(), "its end")
    until(lambda: not other.thread.is_alive(), "a permit")
    assert rank("b") in given


@pytest.mark.parametrize("at_once", [1, 3])
def test_so_many_have_a_permit_at_once(at_once: int) -> None:
    """And no more."""
    turns = Turns(at_once)
    for number in range(at_once):
        assert turns.take(rank(f"f{number}"), never)
    asked = iter((False, True))
    assert not turns.take(rank("more"), lambda: next(asked))


def test_the_rank_of_a_follower_is_that_of_its_fragment() -> None:
    """And of why it is followed."""
    transfer = move(owned(NODE1, NODE2))
    record = replace(DEPLOYED.record, priority=Priority.HIGH)
    one = Following(replace(DEPLOYED, record=record), PLAN.fragments[0], transfer)
    assert rank_of(one) == (0, False, one.deployed.id)
    assert rank_of(replace(one, transfer=None)) == (0, True, one.deployed.id)
    assert rank_of(replace(one, deployed=DEPLOYED))[0] == Priority.NORMAL.order
