"""Oldest records of open sessions, bounded by the longest session."""

from pipeline.ids import Millis
from pipeline.network.boxes.sessions import SessionWindow


def oldest_record(window: SessionWindow, end: Millis) -> Millis:
    """Lower bound of the event times of records in sessions that end at or after an instant.

    >>> oldest_record(SessionWindow(gap_ms=5, longest_ms=100), Millis(304))
    200
    """
    return Millis(last_cut(window, end) - window.gap_ms)


def last_cut(window: SessionWindow, at: Millis) -> Millis:
    """The largest instant at or before another that separates sessions.

    Sessions that end at or after it have no record in common with those that end before it,
    whatever records there are.

    >>> last_cut(SessionWindow(gap_ms=5, longest_ms=100), Millis(304))
    205
    """
    return Millis(at - (at - window.gap_ms) % window.longest_ms)
