"""aggregate, lowered: arguments first, then the grouping, then what `compute` makes of it.

Sums and averages must not depend on the order of rows, so floating point is added as exact decimals
(the argument already carries the cast). A distinct count keeps the set of values in the state.
"""

from pipeline.errors import BrokenInvariantError
from pipeline.network.boxes.aggregate import Aggregate, Aggregation
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.network.types import DecimalType
from pipeline.spark.boxes.stateful import LoweredBox
from pipeline.spark.lowered import Check, Core, Project, SessionCore, WindowCore
from pipeline.spark.sql import check, checks, quoted


def lower(box: Aggregate) -> LoweredBox:
    """Arguments as columns, one call per aggregation, the computed columns."""
    arguments = tuple(
        (argument_name(a), a.argument.sql) for a in box.aggregations if a.argument is not None
    )
    before = Project(
        (*((group.name, group.expression.sql) for group in box.by), *arguments),
        checks(
            (
                *(group.expression for group in box.by),
                *(a.argument for a in box.aggregations if a.argument is not None),
            )
        ),
    )
    by = tuple(group.name for group in box.by)
    functions = (
        *((a.name, call(a)) for a in box.aggregations),
        *((counted_name(a), f"count({quoted(argument_name(a))})") for a in _may_overflow(box)),
    )
    core: Core
    if isinstance(box.window, SessionWindow):
        core = SessionCore(by, functions, WINDOW_START, WINDOW_END, box.window)
    else:
        core = WindowCore(by, functions, WINDOW_START, WINDOW_END, box.window)
    passed = (*(group.name for group in box.by), WINDOW_START, WINDOW_END)
    after = Project(
        (
            *((name, quoted(name)) for name in passed),
            *((computed.name, computed.expression.sql) for computed in box.compute),
        ),
        (*checks(computed.expression for computed in box.compute), *_overflows(box)),
    )
    return LoweredBox((before,), core, (after,))


def argument_name(aggregation: Aggregation) -> str:
    """The column that holds the argument of an aggregation."""
    return f"__argument_{aggregation.name}"


def counted_name(aggregation: Aggregation) -> str:
    """The column that counts the values of an aggregation that may overflow."""
    return f"__counted_{aggregation.name}"


def _may_overflow(box: Aggregate) -> tuple[Aggregation, ...]:
    return tuple(a for a in box.aggregations if a.function in {"sum", "avg"})


def _overflows(box: Aggregate) -> tuple[Check, ...]:
    """A sum of at least one value that is null did not fit its type."""
    return tuple(
        check(argument, f"{quoted(a.name)} IS NULL AND {quoted(counted_name(a))} > 0")
        for a in _may_overflow(box)
        if (argument := a.argument) is not None
    )


def call(aggregation: Aggregation) -> str:
    """The aggregate call in Spark SQL; never raises, whatever the order of the rows."""
    argument = quoted(argument_name(aggregation))
    exact_type = aggregation.type
    match aggregation.function:
        case "count":
            return "count(*)" if aggregation.argument is None else f"count({argument})"
        case "count_distinct":
            return f"CAST(size(collect_set({argument})) AS BIGINT)"
        case "sum":
            total = f"try_sum({argument})"
            exact = isinstance(exact_type, DecimalType)
            return total if exact else f"try_cast({total} AS {exact_type})"
        case "avg":
            total = f"CAST(try_sum({argument}) AS DOUBLE)"
            return f"try_divide({total}, CAST(count({argument}) AS DOUBLE))"
        case "min" | "max":
            return f"{aggregation.function}({argument})"
        case _:
            raise BrokenInvariantError(f"aggregate function {aggregation.function} has no lowering")
