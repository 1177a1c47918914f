"""Descriptions of an aggregate over windows or sessions, for plans."""

from pipeline import durations
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.planner.boxes.windows import grouped, kept_for_each, window_facts
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: Aggregate) -> Facts:
    return (
        *_times(box),
        *computed_facts("by", box.by),
        *computed_facts("compute", box.compute),
    )


def _times(box: Aggregate) -> Facts:
    if not isinstance(box.window, SessionWindow):
        return window_facts(box.window)
    return (
        ("session", f"records at most {durations.format(box.window.gap_ms)} apart"),
        ("sessions are cut every", f"{durations.format(box.window.longest_ms)}, UTC"),
    )


def _keeps(box: Aggregate) -> str:
    if not isinstance(box.window, SessionWindow):
        return kept_for_each("one row", box.window, box.by)
    until = f"until event time passes its last record by {durations.format(box.window.gap_ms)}"
    return f"one row for each session{grouped(box.by)}, {until}"


WORDS: Words[Aggregate] = Words(facts=_facts, keeps=_keeps)
