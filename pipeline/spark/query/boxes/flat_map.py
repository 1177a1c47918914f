"""Lowering of `flat_map`: the array under the name of its elements, a row for each, the columns.

A record is checked before it becomes several rows: each expression of an element is evaluated on
all elements.
"""

from collections.abc import Iterator

from pipeline.network.boxes.flat_map import FlatMap
from pipeline.planner.boxes.words import on_one_line
from pipeline.spark.query.lowered import Check, Explode, Keep, Project, Step
from pipeline.spark.query.sql import check, checks, quoted


def lower(box: FlatMap) -> tuple[Step, ...]:
    """Four steps; those that can fail precede the explode."""
    element = box.each.name
    read = {column.name for computed in box.select for column in computed.expression.columns}
    names = sorted(read - {element, box.at})
    array = (*((name, quoted(name)) for name in names), (element, box.each.expression.sql))
    columns = tuple((computed.name, computed.expression.sql) for computed in box.select)
    return (
        Project(array, checks((box.each.expression,))),
        Keep("true", tuple(_checks(box))),
        Explode(element, box.at),
        Project(columns, ()),
    )


def _checks(box: FlatMap) -> Iterator[Check]:
    array, elements = quoted(box.each.name), box.each.expression
    yield Check(
        f"coalesce(size({array}) > {box.at_most}, false)",
        elements.origin,
        f"{on_one_line(elements)} has more than {box.at_most} elements",
    )
    for computed in box.select:
        failed = computed.expression.failed
        if failed is not None:
            yield check(computed.expression, _for_any(array, box.at, failed))


def _for_any(array: str, at: str | None, condition: str) -> str:
    """Whether a condition holds for any element, which it names like the array."""
    if at is None:
        found = f"exists({array}, {array} -> {condition})"
    else:
        each = f"transform({array}, ({array}, {quoted(at)}) -> {condition})"
        found = f"exists({each}, {array} -> {array})"
    return f"coalesce({found}, false)"
