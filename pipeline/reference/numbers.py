"""Arithmetic of the engine: sums as decimals with ten digits, independent of the order."""

from collections.abc import Collection
from decimal import ROUND_HALF_UP, Decimal, localcontext
from math import ceil, floor

TEN_DIGITS = Decimal("1E-10")
_ENOUGH_DIGITS = 60


def decimal_of(number: float) -> Decimal:
    """A number with ten digits, rounded half up.

    The engine converts the shortest text of a double to a decimal, too.

    >>> decimal_of(0.1)
    Decimal('0.1000000000')
    """
    return Decimal(repr(number)).quantize(TEN_DIGITS, ROUND_HALF_UP)


def average(numbers: Collection[float]) -> float:
    """The sum as a double, divided by the count, which is at least one."""
    return float(sum(decimal_of(number) for number in numbers)) / len(numbers)


def deviation(numbers: Collection[float], digits: int) -> float | None:
    """The standard deviation of a sample, rounded half up; None of a single number."""
    count = len(numbers)
    if count == 1:
        return None
    steps = [int(decimal_of(number) / TEN_DIGITS) for number in numbers]
    squares = count * sum(step * step for step in steps) - sum(steps) ** 2
    with localcontext(prec=_ENOUGH_DIGITS):
        root = (Decimal(squares) / (count * (count - 1))).sqrt() * TEN_DIGITS
        return float(root.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def percentile(numbers: Collection[float], share: float) -> float:
    """The value at a share of the sorted numbers; between two of them by interpolation."""
    ordered = sorted(numbers)
    place = (len(ordered) - 1) * share
    below, above = floor(place), ceil(place)
    if ordered[below] == ordered[above]:
        return ordered[below]
    return (above - place) * ordered[below] + (place - below) * ordered[above]
