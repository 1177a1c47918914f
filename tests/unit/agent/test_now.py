"""The two clocks of the present."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.agent.now import Now
from pipeline.ids import Millis, SteadyMillis

TIMES = st.integers(0, 10**13)


@given(TIMES, TIMES, st.integers(0, 10**9))
def test_what_lasts_is_measured_by_the_steady_clock(wall: int, steady: int, passed: int) -> None:
    """A moment lies as far back on the wall clock as it does on the steady one."""
    now = Now(Millis(wall), SteadyMillis(steady))
    then = SteadyMillis(steady - passed)
    assert now.wall_at(then) == wall - passed
    assert now.steady_at(now.wall_at(then)) == then


@given(TIMES, TIMES, st.integers(0, 10**9))
def test_a_time_that_has_not_come_yet_counts_as_now(wall: int, steady: int, ahead: int) -> None:
    """The clock that showed it was wrong, or this one is."""
    now = Now(Millis(wall), SteadyMillis(steady))
    assert now.steady_at(Millis(wall + ahead)) == steady
