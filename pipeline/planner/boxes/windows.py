"""Descriptions of windows and their state, for plans."""

from pipeline import durations
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow, Window
from pipeline.network.model import Computed
from pipeline.planner.boxes.words import Facts


def window_facts(window: Window) -> Facts:
    """Size and start of the windows."""
    return (
        ("window", _windows(window)),
        ("window offset", f"{durations.format(window.offset_ms)}, UTC"),
    )


def kept_for_each(what: str, window: Window, by: tuple[Computed, ...]) -> str:
    """The text that `what` is kept for each window and group."""
    until = "until event time passes the window's end"
    return f"{what} for each window of {_windows(window)}{grouped(by)}, {until}"


def grouped(by: tuple[Computed, ...]) -> str:
    """The text of the groups."""
    return f" and ({', '.join(c.name for c in by)})" if by else ""


def _windows(window: Window) -> str:
    size = durations.format(window.size_ms)
    match window:
        case TumblingWindow():
            return size
        case SlidingWindow():
            return f"{size} every {durations.format(window.slide_ms)}"
