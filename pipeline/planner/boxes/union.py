"""What the planner says about a union."""

from collections.abc import Mapping

from pipeline.network.boxes.union import Union
from pipeline.planner.boxes.words import Facts, Words


def _passes_on(box: Union) -> Mapping[str, str]:
    return {column.name: column.name for column in box.columns}


def _facts(_box: Union) -> Facts:
    return ()


WORDS: Words[Union] = Words(
    facts=_facts,
    keeps=None,
    order="as in each input partition",
    waits=False,
    passes_on=_passes_on,
)
