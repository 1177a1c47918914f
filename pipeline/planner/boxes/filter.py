"""Descriptions of a filter, for plans."""

from pipeline.network.boxes.filter import Filter
from pipeline.planner.boxes.words import Facts, Words, on_one_line


def _facts(box: Filter) -> Facts:
    return (("where", on_one_line(box.where)),)


WORDS: Words[Filter] = Words(facts=_facts)
