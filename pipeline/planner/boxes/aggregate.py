"""What the planner says about an aggregate over windows or sessions."""

from pipeline import durations
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow, Window
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: Aggregate) -> Facts:
    return (
        *_times(box.window),
        *computed_facts("by", box.by),
        *computed_facts("compute", box.compute),
    )


def _times(window: Window | SessionWindow) -> Facts:
    if isinstance(window, SessionWindow):
        return (
            ("session", f"records at most {durations.format(window.gap_ms)} apart"),
            ("sessions are cut every", f"{durations.format(window.longest_ms)}, UTC"),
        )
    return (
        ("window", _windows(window)),
        ("window offset", f"{durations.format(window.offset_ms)}, UTC"),
    )


def _windows(window: Window) -> str:
    size = durations.format(window.size_ms)
    match window:
        case TumblingWindow():
            return size
        case SlidingWindow():
            return f"{size} every {durations.format(window.slide_ms)}"


def _keeps(box: Aggregate) -> str:
    group = f" and ({', '.join(c.name for c in box.by)})" if box.by else ""
    if isinstance(box.window, SessionWindow):
        gap = durations.format(box.window.gap_ms)
        return f"one row for each session{group}, until event time passes its last record by {gap}"
    return (
        f"one row for each window of {_windows(box.window)}{group}, "
        "until event time passes the window's end"
    )


WORDS: Words[Aggregate] = Words(
    facts=_facts, keeps=_keeps, order="by event time for each key", waits=True
)
