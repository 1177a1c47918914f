"""The ends of tumbling windows: all instants that are `offset` modulo `size`.

A window is `[start, end)`; end to end, so every start is an end too.
"""

from pipeline.ids import Millis
from pipeline.network.boxes.aggregate import TumblingWindow


def last_end(window: TumblingWindow, at: Millis) -> Millis:
    """The largest window end at or before an instant.

    >>> last_end(TumblingWindow(size_ms=10, offset_ms=3), Millis(12))
    3
    """
    return Millis(at - (at - window.offset_ms) % window.size_ms)


def next_end(window: TumblingWindow, after: Millis) -> Millis:
    """The smallest window end after an instant.

    >>> next_end(TumblingWindow(size_ms=10, offset_ms=3), Millis(3))
    13
    """
    return Millis(last_end(window, after) + window.size_ms)
