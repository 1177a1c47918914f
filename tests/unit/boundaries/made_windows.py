"""Hypothesis strategy for windows, and a reference implementation of their ends."""

from hypothesis import strategies as st

from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow, Window


def _sliding(size: int, slide: int, offset: int) -> Window:
    return SlidingWindow(size, offset, min(slide, size - 1))


TUMBLING = st.builds(TumblingWindow, size_ms=st.integers(1, 50), offset_ms=st.integers(0, 49))
SLIDING = st.builds(_sliding, st.integers(2, 50), st.integers(1, 49), st.integers(0, 49))
WINDOWS: st.SearchStrategy[Window] = TUMBLING | SLIDING


def ends_over(window: Window, at: int) -> list[int]:
    """The ends of all windows that contain an instant, in order."""
    starts = range(at - window.size_ms + 1, at + 1)
    found = [start for start in starts if (start - window.offset_ms) % window.slide_ms == 0]
    return [start + window.size_ms for start in found]
