"""What the planner says about an aggregate over windows."""

from pipeline import durations
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.windows import SlidingWindow, TumblingWindow, Window
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: Aggregate) -> Facts:
    return (
        ("window", _windows(box.window)),
        ("window offset", f"{durations.format(box.window.offset_ms)}, UTC"),
        *computed_facts("by", box.by),
        *computed_facts("compute", box.compute),
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
    return (
        f"one row for each window of {_windows(box.window)}{group}, "
        "until event time passes the window's end"
    )


WORDS: Words[Aggregate] = Words(
    facts=_facts, keeps=_keeps, order="by event time for each key", waits=True
)
