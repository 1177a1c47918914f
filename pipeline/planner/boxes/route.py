"""Descriptions of a route and its branches, for plans."""

from pipeline.network.boxes.route import Branch, Route
from pipeline.planner.boxes.words import Facts, Words, on_one_line


def _facts(box: Route) -> Facts:
    to = tuple((f"to {choice.branch}", on_one_line(choice.where)) for choice in box.to)
    return (*to, ("otherwise", box.otherwise or "dropped"))


WORDS: Words[Route] = Words(facts=_facts)
BRANCH_WORDS: Words[Branch] = Words()
