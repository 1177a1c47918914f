"""Descriptions of as-of joins, for plans."""

from pipeline import durations
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.sides import How
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: AsOf) -> Facts:
    on = ", ".join(f"left.{left} = right.{right}" for left, right in box.on)
    how = () if box.how is How.INNER else (("how", "left: rows of which nothing is known, too"),)
    within = (
        f"the latest of {box.right} at the time of the left row, at most"
        f" {durations.format(box.within_ms)} old"
    )
    return (("on", on), ("within", within), *how, *computed_facts("select", box.select))


def _keeps(box: AsOf) -> str:
    return (
        f"rows of {box.left} until event time passes them, the latest of {box.right} for each key"
        f" until it is {durations.format(box.within_ms)} old"
    )


WORDS: Words[AsOf] = Words(facts=_facts, keeps=_keeps)
