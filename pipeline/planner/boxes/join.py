"""Descriptions of a join of two streams, for plans."""

from collections.abc import Mapping

from pipeline import durations
from pipeline.network.boxes.join import Join, TimeBound
from pipeline.network.boxes.sides import How
from pipeline.planner.boxes.words import Facts, Words, computed_facts

_HOW: Mapping[How, str] = {
    How.LEFT: "left: left rows without a partner, too",
    How.FULL: "full: rows of both sides without a partner, too",
}


def _facts(box: Join) -> Facts:
    on = ", ".join(f"left.{left} = right.{right}" for left, right in box.on)
    how = () if box.how is How.INNER else (("how", _HOW[box.how]),)
    return (("on", on), ("within", _bound(box.bound)), *how, *computed_facts("select", box.select))


def _bound(bound: TimeBound) -> str:
    if bound.lower_ms == bound.upper_ms == 0:
        return "left and right at the same time"
    if bound.lower_ms == -bound.upper_ms:
        return f"left and right at most {durations.format(bound.upper_ms)} apart"
    lower, upper = durations.format(bound.lower_ms), durations.format(bound.upper_ms)
    return f"left time minus right time from {lower} to {upper}"


def _keeps(box: Join) -> str:
    """A left row waits for right rows `-lower` later, a right row for left rows `upper` later."""
    left, right = max(0, -box.bound.lower_ms), max(0, box.bound.upper_ms)
    return (
        f"rows of {box.left} until event time passes theirs{_more(left)}, "
        f"rows of {box.right} until it passes theirs{_more(right)}"
    )


def _more(length_ms: int) -> str:
    return f" by {durations.format(length_ms)}" if length_ms else ""


WORDS: Words[Join] = Words(facts=_facts, keeps=_keeps)
