"""What the planner says about a map."""

from collections.abc import Mapping

from pipeline.network.boxes.map import Map
from pipeline.planner.boxes.words import Facts, Words, computed_facts
from pipeline.planner.rename import plain_column


def _facts(box: Map) -> Facts:
    return computed_facts("select", box.select)


def _passes_on(box: Map) -> Mapping[str, str]:
    plain = ((plain_column(column.expression), column.name) for column in box.select)
    return {source.name: name for source, name in plain if source is not None}


WORDS: Words[Map] = Words(
    facts=_facts,
    keeps=None,
    order="as in each input partition",
    waits=False,
    passes_on=_passes_on,
)
