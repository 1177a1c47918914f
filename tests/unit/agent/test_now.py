"""The present on both clocks."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.now import Now
from pipeline.ids import Millis, SteadyMillis

TIMES = st.integers(0, 10**13)


@given(TIMES, TIMES, st.integers(0, 10**9))
def test_durations_are_measured_by_the_steady_clock(wall: int, steady: int, passed: int) -> None:
    """A time is as long ago on the wall clock as it is on the steady one."""
    now = Now(Millis(wall), SteadyMillis(steady))
    then = SteadyMillis(steady - passed)
    assert now.wall_at(then) == wall - passed
    assert now.steady_at(now.wall_at(then)) == then


@given(TIMES, TIMES, st.integers(0, 10**9))
def test_a_future_time_counts_as_now(wall: int, steady: int, offset_ms: int) -> None:
    """One of the two clocks was wrong."""
    now = Now(Millis(wall), SteadyMillis(steady))
    assert now.steady_at(Millis(wall + offset_ms)) == steady
