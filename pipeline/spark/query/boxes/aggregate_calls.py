"""Aggregate functions in Spark SQL: they never raise, and are independent of row order."""

from collections.abc import Callable, Mapping

from pipeline.errors import BrokenInvariantError
from pipeline.network.aggregates import Aggregation
from pipeline.network.types import DecimalType
from pipeline.spark.query import hidden
from pipeline.spark.query.boxes import percentiles, spread
from pipeline.spark.query.sql import quoted

_ADDING = frozenset({"sum", "avg"})
_POSITIONED = {"first": "min_by", "last": "max_by", "min_by": "min_by", "max_by": "max_by"}
"""Functions that select the value of one row, with Spark's function for each."""


def argument_name(aggregation: Aggregation) -> str:
    """The column with the argument of an aggregation."""
    return f"__argument_{aggregation.name}"


def by_name(aggregation: Aggregation) -> str:
    """The column by which an aggregation compares rows."""
    return f"__by_{aggregation.name}"


def counted_name(aggregation: Aggregation) -> str:
    """The column with the number of values of an aggregation that may overflow."""
    return f"__counted_{aggregation.name}"


def looks_at_positions(aggregation: Aggregation) -> bool:
    """Whether ties between rows are broken by their positions."""
    return aggregation.function in _POSITIONED


def overflow(aggregation: Aggregation) -> str | None:
    """SQL condition of an overflow of the result's type; None if there can be none."""
    counted = quoted(counted_name(aggregation))
    if aggregation.function in _ADDING:
        return f"{quoted(aggregation.name)} IS NULL AND {counted} > 0"
    if aggregation.function in spread.FUNCTIONS:
        return f"{counted} > {spread.VALUES_MAX}"
    return None


def call(aggregation: Aggregation) -> str:
    """The aggregate call."""
    written = _CALLS.get(aggregation.function)
    if written is None:
        raise BrokenInvariantError(f"aggregate function {aggregation.function} has no lowering")
    return written(aggregation, quoted(argument_name(aggregation)))


def _count(aggregation: Aggregation, argument: str) -> str:
    return "count(*)" if aggregation.argument is None else f"count({argument})"


def _count_distinct(_: Aggregation, argument: str) -> str:
    return f"CAST(size(collect_set({argument})) AS BIGINT)"


def _sum(aggregation: Aggregation, argument: str) -> str:
    total = f"try_sum({argument})"
    exact = isinstance(aggregation.type, DecimalType)
    return total if exact else f"try_cast({total} AS {aggregation.type})"


def _average(_: Aggregation, argument: str) -> str:
    total = f"CAST(try_sum({argument}) AS DOUBLE)"
    return f"try_divide({total}, CAST(count({argument}) AS DOUBLE))"


def _extreme(aggregation: Aggregation, argument: str) -> str:
    return f"{aggregation.function}({argument})"


def _positioned(aggregation: Aggregation, argument: str) -> str:
    """The argument in the first or last row. No two rows have the same place."""
    by = argument if aggregation.by is None else quoted(by_name(aggregation))
    compared = () if aggregation.by is None else (by,)
    place = ", ".join((*compared, quoted(hidden.EVENT_TIME), quoted(hidden.POSITION)))
    taken = f"CASE WHEN {by} IS NOT NULL THEN struct({place}) END"
    return f"{_POSITIONED[aggregation.function]}({argument}, {taken})"


def _spread(aggregation: Aggregation, argument: str) -> str:
    assert aggregation.argument is not None, "only rows are counted without one"  # noqa: S101
    return spread.call(aggregation.function, argument, aggregation.argument.type)


def _percentile(aggregation: Aggregation, argument: str) -> str:
    return percentiles.exact(argument, *aggregation.parameters)


def _approx_percentile(aggregation: Aggregation, argument: str) -> str:
    return percentiles.approximate(argument, *aggregation.parameters)


_CALLS: Mapping[str, Callable[[Aggregation, str], str]] = {
    "count": _count,
    "count_distinct": _count_distinct,
    "sum": _sum,
    "avg": _average,
    "min": _extreme,
    "max": _extreme,
    "percentile": _percentile,
    "approx_percentile": _approx_percentile,
    **dict.fromkeys(_POSITIONED, _positioned),
    **dict.fromkeys(spread.FUNCTIONS, _spread),
}
