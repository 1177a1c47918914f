"""What the planner says about a map."""

from collections.abc import Mapping

from pipeline.network.boxes.map import Map
from pipeline.planner.boxes.words import Facts, Words, computed_facts, plainly_repeated


def _facts(box: Map) -> Facts:
    return computed_facts("select", box.select)


def _passes_on(box: Map) -> Mapping[str, str]:
    return plainly_repeated(box.select)


WORDS: Words[Map] = Words(facts=_facts, passes_on=_passes_on)
