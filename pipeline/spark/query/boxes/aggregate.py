"""Lowering of `aggregate`: arguments, grouping, then the columns of `compute`."""

from pipeline.network.aggregates import Aggregation
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.planner.boxes.words import on_one_line
from pipeline.spark.query.boxes.aggregate_calls import (
    argument_name,
    by_name,
    call,
    counted_name,
    looks_at_positions,
    overflow,
)
from pipeline.spark.query.boxes.stateful import LoweredBox
from pipeline.spark.query.lowered import Check, GroupCore, Project
from pipeline.spark.query.sql import check, checks, quoted


def lower(box: Aggregate) -> LoweredBox:
    """Arguments as columns, one call per aggregation, the computed columns."""
    read = [
        *((group.name, group.expression) for group in box.by),
        *((argument_name(a), a.argument) for a in box.aggregations if a.argument is not None),
        *((by_name(a), a.by) for a in box.aggregations if a.by is not None),
    ]
    before = Project(
        tuple((name, expression.sql) for name, expression in read),
        checks(expression for _, expression in read),
    )
    by = tuple(group.name for group in box.by)
    functions = (
        *((a.name, call(a)) for a in box.aggregations),
        *(
            (counted_name(a), f"count({quoted(argument_name(a))})")
            for a in box.aggregations
            if overflow(a) is not None
        ),
    )
    positions = any(looks_at_positions(a) for a in box.aggregations)
    core = GroupCore(by, functions, box.window, positions)
    passed = (*(group.name for group in box.by), WINDOW_START, WINDOW_END)
    after = Project(
        (
            *((name, quoted(name)) for name in passed),
            *((computed.name, computed.expression.sql) for computed in box.compute),
        ),
        (*checks(computed.expression for computed in box.compute), *_overflows(box)),
    )
    labels = tuple((a.name, _as_written(a)) for a in box.aggregations)
    return LoweredBox((before,), core, (after,), labels)


def _as_written(aggregation: Aggregation) -> str:
    """The call as written in `compute`."""
    return "count(*)" if aggregation.argument is None else on_one_line(aggregation.argument)


def _overflows(box: Aggregate) -> tuple[Check, ...]:
    """Overflow checks of a result, in addition to those of its expressions."""
    return tuple(
        check(a.argument, failed)
        for a in box.aggregations
        if (failed := overflow(a)) is not None and a.argument is not None
    )
