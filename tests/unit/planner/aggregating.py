"""Reference implementation of aggregate functions, with exact numbers.

Variances and their roots are fractions of the exact squares; floating point comes in where the
result is rounded to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from math import ceil, floor, isnan
from typing import Any

ADDED = Decimal("1e-10")
"""Floating point is added in steps of this size."""
_ENOUGH_DIGITS = 60


@dataclass(frozen=True, slots=True)
class Seen:
    """A row that is aggregated.

    Args:
        place: what rows are ordered by: event time, then position. No two have the same.
        value: the argument.
        by: the second argument, of functions that have one.
    """

    place: tuple[Any, ...]
    value: Any
    by: Any = None


def aggregated(function: str, rows: Sequence[Seen], parameters: tuple[str, ...] = ()) -> Any:
    """The result over the rows of one group, in any order; null is None."""
    if function in _POSITIONED:
        return _POSITIONED[function](rows)
    values = [row.value for row in rows if row.value is not None]
    if function == "count":
        return len(values)
    if function == "count_distinct":
        return len({_compared(value) for value in values})
    if not values:
        return None
    if function.endswith(("_pop", "_samp")):
        return _spread(function, values)
    return _OF_VALUES[function](values, *parameters)


def _exact(value: float | Decimal) -> Fraction:
    if isinstance(value, float):
        context = Context(prec=_ENOUGH_DIGITS)
        return Fraction(Decimal(repr(value)).quantize(ADDED, ROUND_HALF_UP, context))
    return Fraction(value)


def _sum(values: Sequence[Any]) -> Any:
    total = sum(map(_exact, values), Fraction(0))
    if isinstance(values[0], float):
        return float(total)
    return (
        Decimal(total.numerator) / total.denominator
        if isinstance(values[0], Decimal)
        else int(total)
    )


def _average(values: Sequence[Any]) -> float:
    return float(sum(map(_exact, values), Fraction(0))) / len(values)


def _spread(function: str, values: Sequence[Any]) -> float | None:
    exact = [_exact(value) for value in values]
    parts = len(exact) - 1 if function.endswith("_samp") else len(exact)
    if not parts:
        return None
    mean = sum(exact, Fraction(0)) / len(exact)
    variance = sum(((value - mean) ** 2 for value in exact), Fraction(0)) / parts
    if function.startswith("var"):
        return float(variance)
    context = Context(prec=_ENOUGH_DIGITS)
    rounded = context.divide(Decimal(variance.numerator), Decimal(variance.denominator))
    return float(context.sqrt(rounded))


def _percentile(values: Sequence[Any], share: str) -> float:
    ordered = [float(value) for value in sorted(values, key=_compared)]
    place = (len(ordered) - 1) * float(share)
    below, above = ordered[floor(place)], ordered[ceil(place)]
    if floor(place) == ceil(place) or below == above or isnan(below):
        return below
    return (ceil(place) - place) * below + (place - floor(place)) * above


def place_of_share(values: Sequence[float], share: str) -> float:
    """The least value that a share of the values does not exceed: the exact percentile."""
    ordered = sorted(values)
    return ordered[max(0, ceil(Fraction(share) * len(ordered)) - 1)]


def _compared(value: Any) -> tuple[bool, Any]:
    """The sort key of a value: NaN comes behind all numbers, and both zeros are one."""
    is_nan = isinstance(value, float) and isnan(value)
    return is_nan, 0 if is_nan else value


def _first(rows: Sequence[Seen], *, last: bool) -> Any:
    taken = sorted((r for r in rows if r.value is not None), key=lambda r: r.place)
    return taken[-1 if last else 0].value if taken else None


def _at_extreme(rows: Sequence[Seen], *, last: bool) -> Any:
    taken = sorted((r for r in rows if r.by is not None), key=lambda r: (_compared(r.by), r.place))
    return taken[-1 if last else 0].value if taken else None


_POSITIONED: Mapping[str, Callable[[Sequence[Seen]], Any]] = {
    "first": lambda rows: _first(rows, last=False),
    "last": lambda rows: _first(rows, last=True),
    "min_by": lambda rows: _at_extreme(rows, last=False),
    "max_by": lambda rows: _at_extreme(rows, last=True),
}
_OF_VALUES: Mapping[str, Callable[..., Any]] = {
    "sum": _sum,
    "avg": _average,
    "min": lambda values: min(values, key=_compared),
    "max": lambda values: max(values, key=_compared),
    "percentile": _percentile,
}
