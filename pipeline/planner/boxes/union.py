"""What the planner says about a union."""

from pipeline.network.boxes.union import Union
from pipeline.planner.boxes.words import Facts, Words


def _facts(_box: Union) -> Facts:
    return ()


WORDS: Words[Union] = Words(facts=_facts)
