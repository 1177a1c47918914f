"""Metered use of a contract in a settlement period, and the rule that settles differences.

The seller meters load. The buyer, to whom the tasks belong, counts the records and bytes that they
read and wrote; it can do so itself. Where its counts lie below those of the seller by more than
the agreed tolerance, the load is paid in proportion to the lower count, and the rest is disputed:
it is recorded, and not owed.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from pipeline.contracts.money import EXACT, PLACES_MOST, LoadUnits, check_decimal
from pipeline.contracts.terms import TaskId
from pipeline.errors import InputError
from pipeline.ids import Millis

COUNT_MAX: Final = 2**53 - 1
"""Largest whole number of canonical JSON."""


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """A settlement period, from `from_ms` to before `until_ms`."""

    from_ms: Millis
    until_ms: Millis

    @classmethod
    def containing(cls, at_ms: Millis, length_ms: int) -> "Period":
        """The period of this length that contains a time."""
        start = at_ms - at_ms % length_ms
        return cls(Millis(start), Millis(start + length_ms))


@dataclass(frozen=True, slots=True)
class Count:
    """Records and bytes that a task read and wrote in a period."""

    records: int
    bytes: int

    def __post_init__(self) -> None:
        for name, value in (("records", self.records), ("bytes", self.bytes)):
            if not 0 <= value <= COUNT_MAX:
                raise InputError(
                    f"{name} is {value!r}", place="usage", hint="counts are whole numbers from 0."
                )


NOTHING_COUNTED: Final = Count(0, 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """What the seller metered of a task in a period.

    Args:
        task: the task.
        unit_price: the price at which it moved.
        units: its load.
        count: what it read and wrote, as the seller counted.

    Raises:
        InputError: negative, not a number, or a float.
    """

    task: TaskId
    unit_price: Decimal
    units: LoadUnits
    count: Count

    def __post_init__(self) -> None:
        if not self.task:
            raise InputError("a task has no name", place="usage")
        check_decimal(self.unit_price, "price", f"usage of {self.task}")
        check_decimal(self.units, "load", f"usage of {self.task}")


@dataclass(frozen=True, slots=True)
class Settled:
    """Load of a task by the rule: `paid` and `disputed` are what the seller metered together."""

    paid: LoadUnits
    disputed: LoadUnits


def settle(usage: Usage, counted: Count, tolerance: Decimal) -> Settled:
    """Settle the load of a task in a period.

    The payable share is the smaller of two ratios, of records and of bytes, each the buyer's count
    to the seller's; 1 if the buyer counted more, or the seller counted none. A share of
    `1 - tolerance` or more is paid in full. Else the paid load is rounded down to 12 places.

    Args:
        usage: what the seller metered.
        counted: what the buyer counted.
        tolerance: as agreed.
    """
    share = min(
        _share(usage.count.records, counted.records), _share(usage.count.bytes, counted.bytes)
    )
    if share >= 1 - Fraction(tolerance):
        return Settled(usage.units, LoadUnits(Decimal(0)))
    scaled = int(Fraction(usage.units) * share * 10**PLACES_MOST)
    paid = EXACT.scaleb(Decimal(scaled), -PLACES_MOST)
    return Settled(LoadUnits(paid), LoadUnits(EXACT.subtract(usage.units, paid)))


def total_units(usages: Iterable[Usage]) -> LoadUnits:
    """The load of usages together."""
    total = Decimal(0)
    for one in usages:
        total = EXACT.add(total, one.units)
    return LoadUnits(total)


def _share(by_seller: int, by_buyer: int) -> Fraction:
    return Fraction(min(by_buyer, by_seller), by_seller) if by_seller else Fraction(1)
