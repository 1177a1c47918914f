"""Descriptions of a map, for plans."""

from pipeline.network.boxes.map import Map
from pipeline.planner.boxes.words import Facts, Words, computed_facts, repeated_columns


def _facts(box: Map) -> Facts:
    return computed_facts("select", box.select)


WORDS: Words[Map] = Words(facts=_facts, passes_on=repeated_columns)
