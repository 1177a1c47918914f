"""What the planner says about a map."""

from pipeline.network.boxes.map import Map
from pipeline.planner.boxes.words import Facts, Words, computed_facts


def _facts(box: Map) -> Facts:
    return computed_facts("select", box.select)


WORDS: Words[Map] = Words(facts=_facts, keeps=None, order="as in each input partition", waits=False)
