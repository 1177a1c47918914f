"""When the state of tentative results is reported."""

from dataclasses import replace

import pytest

from pipeline.boundaries.deadline import Held
from pipeline.ids import Millis, SteadyMillis, StreamName, TopicName
from pipeline.lanes.fork_phases import ForkPhase
from pipeline.lanes.tentative_state import (
    REPORT_MS,
    TentativeCounts,
    TentativeState,
    is_due,
    missing_text,
)
from pipeline.markers.positions import InputPartition

ONE, TEN = (InputPartition(StreamName("cars"), TopicName("car-sightings"), n) for n in (1, 10))
HELD = Held(SteadyMillis(10), 0, None, Millis(0), frozenset({TEN, ONE}))
SAID = TentativeState(ForkPhase.READY, SteadyMillis(50), HELD)
AT = SteadyMillis(100)


def test_what_is_missing_is_sorted_and_short() -> None:
    """Nothing is while nothing is held back."""
    assert [missing_text(one) for one in SAID.missing] == ["car-sightings/1", "car-sightings/10"]
    assert replace(SAID, held=None).missing == ()


def test_counts_since_others_leave_out_what_was_before() -> None:
    """Those that are open are so now."""
    before, now = TentativeCounts(9, 3, 2, 1, 3), TentativeCounts(20, 5, 5, 2, 8)
    assert now.since(before) == TentativeCounts(11, 2, 3, 1, 8)


@pytest.mark.parametrize("phase", [one for one in ForkPhase if one is not ForkPhase.READY])
def test_a_change_of_phase_is_reported_at_once(phase: ForkPhase) -> None:
    """So is the first state."""
    assert is_due(replace(SAID, phase=phase), SAID, AT, AT)
    assert is_due(SAID, None, AT, AT)


def test_another_change_is_reported_after_a_while() -> None:
    """The same state never."""
    counted = replace(SAID, counts=TentativeCounts(published=1))
    due_ms = SteadyMillis(AT + REPORT_MS)
    assert not is_due(counted, SAID, AT, SteadyMillis(due_ms - 1))
    assert is_due(counted, SAID, AT, due_ms)
    assert not is_due(SAID, SAID, AT, due_ms)
