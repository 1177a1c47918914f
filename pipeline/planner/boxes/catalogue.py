"""The planner's table of box kinds, and properties derived from their traits."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, cast

from pipeline.network.boxes.traits import Provenance, traits
from pipeline.network.model import Box
from pipeline.network.types import Columns
from pipeline.planner.boxes import (
    aggregate,
    as_of,
    deduplicate,
    flat_map,
    join,
    python,
    route,
    top,
    union,
)
from pipeline.planner.boxes import filter as filter_box
from pipeline.planner.boxes import map as map_box
from pipeline.planner.boxes.words import Facts, Words

KINDS: Mapping[str, Words[Any]] = MappingProxyType(
    {
        "aggregate": aggregate.WORDS,
        "as_of": as_of.WORDS,
        "branch": route.BRANCH_WORDS,
        "deduplicate": deduplicate.WORDS,
        "filter": filter_box.WORDS,
        "flat_map": flat_map.WORDS,
        "join": join.WORDS,
        "map": map_box.WORDS,
        "python": python.WORDS,
        "route": route.WORDS,
        "top": top.WORDS,
        "union": union.WORDS,
    }
)


def facts(box: Box) -> Facts:
    """Everything that determines a box's results, in the user's words."""
    return KINDS[box.kind].facts(box)


def keeps(box: Box) -> str:
    """What a box keeps across batches, and until when; empty for a stateless one."""
    say = KINDS[box.kind].keeps
    return "" if say is None else say(box)


def passes_on(box: Box) -> Mapping[str, str]:
    """Input column → output column that repeats it, of each input; empty if none is repeated."""
    if traits(box).provenance is Provenance.PASSED:
        return {column.name: column.name for column in box.columns}
    find = KINDS[box.kind].passes_on
    return {} if find is None else find(box)


def keeps_key(box: Box) -> bool:
    """Whether a row keeps the key of the box's input."""
    return traits(box).from_one_row and not box.key


def with_key(box: Box, key: tuple[str, ...]) -> Box:
    """The same box with a declared key; every box is a dataclass with a field `key`."""
    return cast("Box", replace(cast("Any", box), key=key))


def with_columns(box: Box, columns: Columns) -> Box:
    """The same box with some of its columns; every box is a dataclass with a field `columns`."""
    return cast("Box", replace(cast("Any", box), columns=columns))
