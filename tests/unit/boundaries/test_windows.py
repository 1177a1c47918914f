"""Window ends."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.windows import last_end, next_end
from pipeline.ids import Millis
from pipeline.network.boxes.aggregate import TumblingWindow

WINDOWS = st.builds(TumblingWindow, size_ms=st.integers(1, 100), offset_ms=st.integers(-200, 200))


@given(WINDOWS, st.integers(-1_000, 1_000))
def test_an_instant_lies_between_two_neighbouring_ends(window: TumblingWindow, at: int) -> None:
    """The last end is at or before an instant, the next one after it, one size apart."""
    before, after = last_end(window, Millis(at)), next_end(window, Millis(at))
    assert before <= at < after
    assert after - before == window.size_ms
    assert (before - window.offset_ms) % window.size_ms == 0
