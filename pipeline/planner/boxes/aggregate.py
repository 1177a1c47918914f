"""What the planner says about an aggregate over tumbling windows."""

from pipeline import durations
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: Aggregate) -> Facts:
    return (
        ("window", durations.format(box.window.size_ms)),
        ("window offset", f"{durations.format(box.window.offset_ms)}, UTC"),
        *computed_facts("by", box.by),
        *computed_facts("compute", box.compute),
    )


def _keeps(box: Aggregate) -> str:
    group = f" and ({', '.join(c.name for c in box.by)})" if box.by else ""
    return (
        f"one row for each window of {durations.format(box.window.size_ms)}{group}, "
        "until event time passes the window's end"
    )


WORDS: Words[Aggregate] = Words(
    facts=_facts, keeps=_keeps, order="by event time for each key", waits=True
)
