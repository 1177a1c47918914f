"""What the planner says about a filter."""

from pipeline.network.boxes.filter import Filter
from pipeline.planner.boxes.words import Facts, Words


def _facts(box: Filter) -> Facts:
    return (("where", box.where.text),)


WORDS: Words[Filter] = Words(
    facts=_facts, keeps=None, order="as in each input partition", waits=False
)
