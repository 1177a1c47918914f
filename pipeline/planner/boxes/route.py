"""What the planner says about a route and its branches."""

from pipeline.network.boxes.route import Branch, Route
from pipeline.planner.boxes.words import Facts, Words, every_column, on_one_line


def _facts(box: Route) -> Facts:
    to = tuple((f"to {choice.branch}", on_one_line(choice.where)) for choice in box.to)
    return (*to, ("otherwise", box.otherwise or "dropped"))


def _no_facts(_box: Branch) -> Facts:
    return ()


_ORDER = "as in each input partition"

WORDS: Words[Route] = Words(
    facts=_facts, keeps=None, order=_ORDER, waits=False, passes_on=every_column
)
BRANCH_WORDS: Words[Branch] = Words(
    facts=_no_facts, keeps=None, order=_ORDER, waits=False, passes_on=every_column
)
