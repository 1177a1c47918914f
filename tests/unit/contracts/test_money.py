"""Amounts of money: exact, and in one currency."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.money import Currency, Money
from pipeline.errors import InputError

EUR = Currency("EUR")
AMOUNTS = st.decimals(-(10**9), 10**9, places=12, allow_nan=False)


@given(AMOUNTS, AMOUNTS)
def test_sums_are_exact(one: Decimal, other: Decimal) -> None:
    """What is added and taken away again leaves the same amount, to the last digit."""
    total = Money(EUR, one) + Money(EUR, other)
    assert total - Money(EUR, other) == Money(EUR, one)
    assert total + -total == Money(EUR, Decimal(0))


def test_currencies_are_not_mixed() -> None:
    """There is no rate between them."""
    with pytest.raises(InputError, match="different currencies"):
        Money(EUR, Decimal(1)) + Money(Currency("USD"), Decimal(1))


@pytest.mark.parametrize("amount", [Decimal("nan"), Decimal("inf"), 0.1])
def test_an_amount_is_a_finite_decimal(amount: Decimal) -> None:
    """Anything else is refused."""
    with pytest.raises(InputError, match="no amount of money"):
        Money(EUR, amount)


@pytest.mark.parametrize("currency", ["", "eur", "EURO", "€€€", "E1R"])
def test_a_currency_is_three_capitals(currency: str) -> None:
    """As in ISO 4217."""
    with pytest.raises(InputError, match="is no currency"):
        Money(Currency(currency), Decimal(1))


def test_money_as_text() -> None:
    """Without an exponent."""
    assert str(Money(EUR, Decimal("1E-7"))) == "0.0000001 EUR"
