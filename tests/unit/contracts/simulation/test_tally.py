"""Tally of moves: what counts as going to and fro."""

from pipeline.contracts.decisions import Decision, Lot, What
from pipeline.contracts.simulation.tally import CHANGE_MS, Tally
from pipeline.contracts.terms import PartyId, TaskId
from pipeline.ids import Millis

A, B, C = PartyId("a"), PartyId("b"), PartyId("c")
LOT = Lot((TaskId("a.1"), TaskId("a.2")))


def tallied(*decisions: tuple[int, PartyId, What, PartyId]) -> Tally:
    """The tally of some decisions about both tasks."""
    tally = Tally()
    for at_ms, me, what, partner in decisions:
        tally.note(Decision(Millis(at_ms), me, what, partner, None, LOT))
    return tally


def test_a_task_that_goes_back_before_loads_change_is_repeated() -> None:
    """Whoever of both has ended its stay."""
    for ends in ((1_000, B, What.RETURNED, A), (1_000, A, What.RECALLED, B)):
        found = tallied((0, A, What.SENT, B), ends, (2_000, A, What.SENT, B))
        assert (found.moves, found.ended, found.repeated) == (2, 1, 2)
        assert found.moved_ms == 2_000


def test_after_a_change_or_to_another_partner_it_is_not() -> None:
    """Loads may have changed, or another partner is cheaper."""
    ends = (1_000, B, What.RETURNED, A)
    assert tallied(ends, (CHANGE_MS, A, What.SENT, B)).repeated == 0
    assert tallied(ends, (2_000, A, What.SENT, C)).repeated == 0
