"""How a follower repairs its state."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.lanes.repairs import REPAIRS_MAX, Difference, Repair, Repairs
from pipeline.markers.commit_marker import CommitMarker, Judged
from tests.unit.lanes.start.test_decision import marker

DECIDED = Difference("records read: 3, not 4")
RESULTS = Difference("the results have other values", is_of_results=True)


def batch(records: int = 1) -> CommitMarker:
    """The marker of a batch with records."""
    return replace(marker(5), judged=Judged(records, 0, late=False, refused=0, failed=0))


def test_other_decisions_are_repaired_from_the_last_batch_that_agreed() -> None:
    """Its state is that of the owner: a lane may begin from it at any time."""
    repairs = Repairs()
    for _ in range(REPAIRS_MAX):
        assert repairs.differs(DECIDED) is Repair.SINCE_AGREED
        assert not repairs.is_in_doubt
    assert repairs.differs(DECIDED) is None
    assert repairs.is_in_doubt


def test_other_results_may_come_from_a_state_that_differed_before() -> None:
    """So it is built from the log, and whatever agrees before that says nothing."""
    repairs = Repairs()
    assert repairs.differs(RESULTS) is Repair.FROM_LOG
    repairs.agrees(batch(), results=2)
    assert repairs.is_in_doubt
    assert repairs.differs(DECIDED) is Repair.FROM_LOG
    repairs.built_from_log()
    assert not repairs.is_in_doubt
    assert repairs.differs(DECIDED) is Repair.SINCE_AGREED


def test_a_batch_that_agrees_ends_a_row_if_it_has_what_differed() -> None:
    """A window closes in few batches: the others say nothing about its results."""
    for difference, agreeing in ((DECIDED, (batch(), 0)), (RESULTS, (batch(0), 1))):
        repairs = Repairs()
        repairs.differs(difference)
        repairs.agrees(batch(0), results=0)
        if difference is RESULTS:
            repairs.agrees(batch(9), results=0)
        assert repairs.in_a_row == 1
        repairs.agrees(*agreeing)
        assert repairs.in_a_row == 0


@given(st.lists(st.sampled_from(["decided", "results", "agrees"]), max_size=30))
def test_it_is_discarded_after_three_repairs_in_a_row(outcomes: list[str]) -> None:
    """And never before; what is in doubt is never handed over before it was built from the log."""
    repairs, row = Repairs(), 0
    for outcome in outcomes:
        if outcome == "agrees":
            repairs.agrees(batch(), results=1)
            row = 0
            continue
        repair = repairs.differs(DECIDED if outcome == "decided" else RESULTS)
        assert (repair is None) == (row == REPAIRS_MAX)
        if repair is None:
            assert repairs.is_in_doubt
            return
        row += 1
        assert repairs.is_in_doubt == (repair is Repair.FROM_LOG) == (outcome == "results")
        if repair is Repair.FROM_LOG:
            repairs.built_from_log()
