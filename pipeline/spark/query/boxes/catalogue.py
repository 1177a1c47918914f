"""Catalogue of box lowerings: each kind has a module in this package and an entry here."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import BrokenInvariantError
from pipeline.network.model import Box
from pipeline.spark.query.boxes import (
    aggregate,
    as_of,
    deduplicate,
    filter,  # noqa: A004 - kinds are named so
    flat_map,
    join,
    map,  # noqa: A004 - kinds are named so
    python,
    route,
    top,
    union,
)
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import Step

STATELESS: Mapping[str, Callable[[Any], tuple[Step, ...]]] = {
    "branch": route.lower_branch,
    "filter": filter.lower,
    "flat_map": flat_map.lower,
    "map": map.lower,
    "python": python.lower,
    "route": route.lower,
    "union": union.lower,
}
STATEFUL: Mapping[str, Callable[[Any], LoweredBox]] = {
    "aggregate": aggregate.lower,
    "as_of": as_of.lower,
    "deduplicate": deduplicate.lower,
    "join": join.lower,
    "top": top.lower,
}


def lower_stateless(box: Box) -> tuple[Step, ...]:
    """The steps of a stateless box."""
    lower = STATELESS.get(box.kind)
    if lower is None:
        raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateless")
    return lower(box)


def lower_stateful(box: Box) -> LoweredBox:
    """The core of a stateful box, with the steps before and after it."""
    lower = STATEFUL.get(box.kind)
    if lower is None:
        raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateful")
    return lower(box)
