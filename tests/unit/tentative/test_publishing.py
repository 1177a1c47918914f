"""Which results of a fork are published after a batch, and how far these are complete."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import RefusedError
from pipeline.ids import Millis
from pipeline.tentative.progress import NOTHING_MS
from pipeline.tentative.publishing import Publishing
from pipeline.tentative.records import TentativeResult
from tests.unit.tentative.made import result


def times(found: Sequence[TentativeResult]) -> list[int]:
    """The event times of results."""
    return [one.timestamp_ms for one in found]


def test_results_that_wait_are_complete_after_the_last_batch_before_the_deadline() -> None:
    """The stable lane has those up to there as well."""
    found = Publishing(waits=True)
    found.early(Millis(9))
    found.early(Millis(19))
    assert times(found.due([result("b", 29), result("a", 25)], None, None)) == [25, 29]
    assert found.begins_ms == 19


def test_without_waiting_only_what_is_made_of_tentative_records_is_tentative() -> None:
    """It is complete after the cut in the input."""
    found = Publishing(waits=False)
    found.early(Millis(9))
    assert found.due([result("a", 15)], Millis(19), None) == []
    assert found.begins_ms is None
    assert times(found.due([result("b", 25)], Millis(29), Millis(19))) == [25]
    assert found.begins_ms == 19


def test_results_are_held_until_event_time_has_passed_them() -> None:
    """A batch may have read a part of the records up to there."""
    found = Publishing(waits=False)
    assert found.due([result("c", 30)], NOTHING_MS, Millis(9)) == []
    assert times(found.due([result("a", 12), result("b", 20)], Millis(19), Millis(9))) == [12]
    assert times(found.due([], Millis(29), Millis(9))) == [20]
    assert times(found.due([result("d", 30)], Millis(30), Millis(9))) == [30, 30]
    found.due([result("f", 50), result("e", 40)], Millis(39), Millis(9))
    assert times(found.due([], None, Millis(9))) == [40, 50], "without a limit"
    assert found.due([], None, Millis(9)) == []


def test_the_number_of_held_results_has_a_limit() -> None:
    """The fork fails with more."""
    found = Publishing(waits=False, most=1)
    found.due([result("a", 20)], Millis(9), Millis(9))
    with pytest.raises(RefusedError, match="2 tentative results wait for event time"):
        found.due([result("b", 20)], Millis(9), Millis(9))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=20),
    st.lists(st.integers(0, 50), min_size=1, max_size=10),
)
def test_held_results_come_once_and_in_order(
    made: list[tuple[int, int]], boundaries: list[int]
) -> None:
    """Whatever the batches are; each comes after what its boundary has passed, none is lost."""
    boundaries = [*sorted(boundaries), 100]
    found, published = Publishing(waits=False), list[TentativeResult]()
    before = -1
    for number, boundary in enumerate(boundaries):
        batch = [
            result(f"{at}", ms)
            for at, (ms, of) in enumerate(made)
            if of % len(boundaries) == number and ms > before
        ]
        due = found.due(batch, Millis(boundary), Millis(0))
        assert all(before < ms <= boundary for ms in times(due))
        published += due
        before = boundary
    assert times(published) == sorted(times(published))
    assert len({one.id for one in published}) == len(published)
