"""Amounts of money and of load: exact decimals, never floats."""

from dataclasses import dataclass
from decimal import Context, Decimal, DivisionByZero, Inexact, InvalidOperation, Overflow
from typing import Final, NewType

from pipeline.errors import InputError

Currency = NewType("Currency", str)
"""Three capital letters, as in ISO 4217."""
LoadUnits = NewType("LoadUnits", Decimal)
"""An amount of load that is paid for: 1 % of a reference core for a second is one unit."""

PLACES_MOST: Final = 12
"""Decimal places that a price or an amount of load may have."""
WHOLE_MOST: Final = Decimal(10) ** 15
"""Prices and amounts of load are smaller than this."""
CURRENCY_LETTERS: Final = 3

EXACT: Final = Context(prec=80, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
"""Arithmetic of payments: it raises where a result would have to be rounded. Products of two
checked numbers have 54 digits at most; the others are for sums."""


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency; a negative one is owed by the other side.

    Raises:
        InputError: no finite decimal, or no currency.
    """

    currency: Currency
    amount: Decimal

    def __post_init__(self) -> None:
        check_currency(self.currency, "amount of money")
        if not _is_finite(self.amount):
            raise InputError(
                f"{self.amount!r} is no amount of money", hint="amounts are finite decimals."
            )

    def __add__(self, other: "Money") -> "Money":
        self._check_same(other)
        return Money(self.currency, EXACT.add(self.amount, other.amount))

    def __sub__(self, other: "Money") -> "Money":
        self._check_same(other)
        return Money(self.currency, EXACT.subtract(self.amount, other.amount))

    def __neg__(self) -> "Money":
        return Money(self.currency, EXACT.minus(self.amount))

    def __str__(self) -> str:
        return f"{self.amount:f} {self.currency}"

    def _check_same(self, other: "Money") -> None:
        if self.currency != other.currency:
            raise InputError(
                f"{self} and {other} have different currencies",
                hint="keep one account for each currency; amounts are never converted.",
            )


def _is_finite(number: object) -> bool:
    """Whether it is a decimal, and neither infinite nor not a number."""
    return isinstance(number, Decimal) and number.is_finite()


def check_currency(currency: str, place: str) -> None:
    """Check that a text names a currency.

    Raises:
        InputError: it is not three capital letters.
    """
    letters = len(currency) == CURRENCY_LETTERS and currency.isascii() and currency.isalpha()
    if not letters or currency != currency.upper():
        raise InputError(
            f"{currency!r} is no currency", place=place, hint="write three capitals, such as EUR."
        )


def check_decimal(number: Decimal, name: str, place: str) -> None:
    """Check that a price or an amount of load is one: finite, not negative, not too long.

    Args:
        number: the value; floats are refused, since their digits are not what was written.
        name: of the value, for the message.
        place: for the message.

    Raises:
        InputError: it is not.
    """
    if not _is_finite(number) or number < 0:
        hint = f"{name} is a finite decimal that is not negative."
        raise InputError(f"{name} is {number!r}", place=place, hint=hint)
    exponent = number.as_tuple().exponent
    if number >= WHOLE_MOST or not isinstance(exponent, int) or exponent < -PLACES_MOST:
        hint = f"{name} is below {WHOLE_MOST:f} and has up to {PLACES_MOST} decimal places."
        raise InputError(f"{name} is {number}", place=place, hint=hint)
