"""How the engine adds: as decimals with ten digits, so that the order does not matter."""

from collections.abc import Collection
from decimal import ROUND_HALF_UP, Decimal

TEN_DIGITS = Decimal("1E-10")


def decimal_of(number: float) -> Decimal:
    """A number with ten digits, rounded half up.

    The shortest text of a double is what the engine turns into a decimal, too.

    >>> decimal_of(0.1)
    Decimal('0.1000000000')
    """
    return Decimal(repr(number)).quantize(TEN_DIGITS, ROUND_HALF_UP)


def average(numbers: Collection[float]) -> float:
    """The sum as a double, divided by how many there are; there is at least one."""
    return float(sum(decimal_of(number) for number in numbers)) / len(numbers)
