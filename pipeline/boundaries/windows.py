"""Window ends: all instants that equal offset + size, modulo slide.

A window is `[start, end)`. Tumbling windows slide by their size.
"""

from pipeline.ids import Millis
from pipeline.network.boxes.windows import Window


def last_end(window: Window, at: Millis) -> Millis:
    """The largest window end at or before an instant.

    >>> last_end(TumblingWindow(size_ms=10, offset_ms=3), Millis(12))
    3
    """
    return Millis(at - (at - window.offset_ms - window.size_ms) % window.slide_ms)


def next_end(window: Window, after: Millis) -> Millis:
    """The smallest window end after an instant: of the first window that contains it.

    >>> next_end(TumblingWindow(size_ms=10, offset_ms=3), Millis(3))
    13
    """
    return Millis(last_end(window, after) + window.slide_ms)


def final_end(window: Window, at: Millis) -> Millis:
    """The end of the last window that contains an instant.

    >>> final_end(SlidingWindow(size_ms=10, offset_ms=3, slide_ms=5), Millis(3))
    13
    """
    return last_end(window, Millis(at + window.size_ms))
