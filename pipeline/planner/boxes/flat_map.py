"""Descriptions of a flat_map, for plans."""

from pipeline.network.boxes.flat_map import FlatMap
from pipeline.planner.boxes.words import (
    Facts,
    Words,
    computed_facts,
    repeated_columns,
)


def _facts(box: FlatMap) -> Facts:
    at = () if box.at is None else (("at", box.at),)
    return (
        *computed_facts("each", (box.each,)),
        *at,
        ("at most", f"{box.at_most} rows of a record"),
        *computed_facts("select", box.select),
    )


WORDS: Words[FlatMap] = Words(facts=_facts, passes_on=repeated_columns)
