"""How far back sessions reach."""

from pipeline.ids import Millis
from pipeline.network.boxes.sessions import SessionWindow


def oldest_record(window: SessionWindow, end: Millis) -> Millis:
    """No record of a session that ends at or after an instant lies before this.

    >>> oldest_record(SessionWindow(gap_ms=5, longest_ms=100), Millis(304))
    200
    """
    last = end - window.gap_ms
    return Millis(last - last % window.longest_ms)
