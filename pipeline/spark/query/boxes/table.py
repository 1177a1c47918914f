"""The table of box kinds: adding a kind is one file beside this one and one line here."""

from collections.abc import Callable, Mapping
from typing import Any

from pipeline.errors import BrokenInvariantError
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.python import Python
from pipeline.network.boxes.route import Branch, Route
from pipeline.network.boxes.top import Top
from pipeline.network.boxes.union import Union
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

_STATELESS: Mapping[type, Callable[[Any], tuple[Step, ...]]] = {
    Filter: filter.lower,
    Map: map.lower,
    FlatMap: flat_map.lower,
    Python: python.lower,
    Union: union.lower,
    Route: route.lower,
    Branch: route.lower_branch,
}


def lower_stateless(box: Box) -> tuple[Step, ...]:
    """The steps of a box that keeps nothing from row to row."""
    lower = _STATELESS.get(type(box))
    if lower is None:
        raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateless")
    return lower(box)


def lower_stateful(box: Box) -> LoweredBox:
    """The core of a box that keeps state, with the steps before and after it."""
    match box:
        case Aggregate():
            return aggregate.lower(box)
        case Join():
            return join.lower(box)
        case AsOf():
            return as_of.lower(box)
        case Deduplicate():
            return deduplicate.lower(box)
        case Top():
            return top.lower(box)
        case _:
            raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateful")
