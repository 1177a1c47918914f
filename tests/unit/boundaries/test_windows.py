"""Window ends."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.windows import final_end, last_end, next_end
from pipeline.ids import Millis
from pipeline.network.boxes.windows import Window
from tests.unit.boundaries.made_windows import WINDOWS, ends_over


@given(WINDOWS, st.integers(-1_000, 1_000))
def test_an_instant_is_between_two_adjacent_window_ends(window: Window, at: int) -> None:
    """The last end is at or before an instant, the next one after it, one slide apart."""
    before, after = last_end(window, Millis(at)), next_end(window, Millis(at))
    assert before <= at < after
    assert after - before == window.slide_ms
    assert (before - window.offset_ms - window.size_ms) % window.slide_ms == 0


@given(WINDOWS, st.integers(-1_000, 1_000))
def test_windows_that_contain_an_instant_have_ends_from_next_to_final(
    window: Window, at: int
) -> None:
    """So a record is late for some of them, or for all."""
    ends = ends_over(window, at)
    assert (next_end(window, Millis(at)), final_end(window, Millis(at))) == (ends[0], ends[-1])
