"""The table of box kinds: adding a kind is one file beside this one and one case here."""

from pipeline.errors import BrokenInvariantError
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.python import Python
from pipeline.network.boxes.union import Union
from pipeline.network.model import Box
from pipeline.spark.boxes import (
    aggregate,
    filter,  # noqa: A004 - kinds are named so
    join,
    map,  # noqa: A004 - kinds are named so
    python,
    union,
)
from pipeline.spark.boxes.stateful import LoweredBox
from pipeline.spark.lowered import Step


def lower_stateless(box: Box) -> tuple[Step, ...]:
    """The steps of a box that keeps nothing from row to row."""
    match box:
        case Filter():
            return filter.lower(box)
        case Map():
            return map.lower(box)
        case Python():
            return python.lower(box)
        case Union():
            return union.lower(box)
        case _:
            raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateless")


def lower_stateful(box: Box) -> LoweredBox:
    """The core of a box that keeps state, with the steps before and after it."""
    match box:
        case Aggregate():
            return aggregate.lower(box)
        case Join():
            return join.lower(box)
        case _:
            raise BrokenInvariantError(f"box {box.name} of kind {box.kind} is not stateful")
