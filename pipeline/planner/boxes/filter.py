"""What the planner says about a filter."""

from collections.abc import Mapping

from pipeline.network.boxes.filter import Filter
from pipeline.planner.boxes.words import Facts, Words, on_one_line


def _facts(box: Filter) -> Facts:
    return (("where", on_one_line(box.where)),)


def _passes_on(box: Filter) -> Mapping[str, str]:
    return {column.name: column.name for column in box.columns}


WORDS: Words[Filter] = Words(
    facts=_facts,
    keeps=None,
    order="as in each input partition",
    waits=False,
    passes_on=_passes_on,
)
