"""Terms of a contract: wrong ones are refused with words."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.money import Currency, LoadUnits, Money
from pipeline.contracts.terms import Clauses, Limits, Price, TaskSet
from pipeline.errors import InputError
from pipeline.ids import Millis
from tests.unit.contracts.terms import CONTRACT

EUR = Currency("EUR")
PRICE = CONTRACT.price
PRICES = st.decimals(Decimal("0.000001"), 10**6, places=12, allow_nan=False)


def test_the_range_lies_below_the_fixed_price() -> None:
    """From fixed - range up to fixed."""
    assert (PRICE.lowest, PRICE.highest) == (Decimal("0.0036"), Decimal("0.0040"))
    assert Price(EUR, Decimal(1)).lowest == Decimal(1)


@pytest.mark.parametrize(
    ("fixed", "span"),
    [
        (Decimal(0), Decimal(0)),
        (Decimal(-1), Decimal(0)),
        (Decimal(1), Decimal(-1)),
        (Decimal(1), Decimal("1.1")),
        (Decimal("nan"), Decimal(0)),
        (Decimal("sNaN"), Decimal(0)),
        (Decimal(1), Decimal("inf")),
        (Decimal("1E-13"), Decimal(0)),
        (Decimal("1E15"), Decimal(0)),
        (0.004, Decimal(0)),
    ],
)
def test_a_wrong_price_is_refused(fixed: Decimal, span: Decimal) -> None:
    """Inverted ranges, negative numbers, none at all, too many digits, floats."""
    with pytest.raises(InputError, match=r"price"):
        Price(EUR, fixed, span)


@given(PRICES, st.decimals(0, 1, places=3), st.decimals(0, 10**6, places=12))
def test_payments_are_exact(fixed: Decimal, share: Decimal, units: Decimal) -> None:
    """Load times price, whatever their digits; twice the load costs twice as much."""
    price = Price(EUR, fixed, (fixed * share).quantize(Decimal("1E-12")).min(fixed))
    once = price.payment(LoadUnits(units), price.lowest)
    assert once + once == price.payment(LoadUnits(2 * units), price.lowest)


def test_a_payment_outside_the_range_is_refused() -> None:
    """By either side; the ends belong to the range."""
    for unit_price in ("0.0035", "0.0041", "nan"):
        with pytest.raises(InputError, match=r"payment"):
            PRICE.payment(LoadUnits(Decimal(1)), Decimal(unit_price))
    assert PRICE.payment(LoadUnits(Decimal(10)), PRICE.fixed) == Money(EUR, Decimal("0.04"))


@pytest.mark.parametrize("units", [Decimal(-1), Decimal("nan"), 0.5])
def test_no_payment_for_a_load_that_is_none(units: LoadUnits) -> None:
    """Negative, not a number, a float."""
    with pytest.raises(InputError, match=r"load is"):
        PRICE.payment(units, PRICE.fixed)


def test_a_task_set_names_what_is_outside() -> None:
    """A kind that is missing, and code of the origin."""
    tasks = CONTRACT.tasks
    assert tasks.contains({"filter"}, python=False)
    assert tasks.outside({"filter", "top", "join"}, python=True) == ("join", "top", "python")
    with pytest.raises(InputError, match="no kind of box"):
        TaskSet(frozenset())


@pytest.mark.parametrize("limits", [(0, 1, 1), (1, -1, 1), (1, 1, 0), (1.5, 1, 1)])
def test_limits_are_positive_whole_numbers(limits: tuple[int, int, int]) -> None:
    """Of each resource."""
    with pytest.raises(InputError, match="limits"):
        Limits(*limits)


def test_promised_durations_are_not_negative() -> None:
    """Of both."""
    with pytest.raises(InputError, match="availability is -1 ms"):
        Clauses(availability_ms=-1)
    with pytest.raises(InputError, match="delay is -1 ms"):
        Clauses(delay_ms=-1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"until_ms": 1_000}, "it ends at 1000"),
        ({"seller": "alice"}, "buyer and seller"),
        ({"id": ""}, "id is empty"),
        ({"buyer": ""}, "buyer is empty"),
        ({"notice_ms": -1}, "notice is -1"),
    ],
)
def test_wrong_terms_are_refused(change: dict[str, object], words: str) -> None:
    """With the contract and the field."""
    with pytest.raises(InputError, match=words):
        replace(CONTRACT, **change)  # type: ignore[arg-type] # wrong on purpose


def test_a_contract_holds_from_its_begin_until_before_its_end() -> None:
    """Half open."""
    held = [CONTRACT.is_in_force(Millis(at)) for at in (999, 1_000, 1_999, 2_000)]
    assert held == [False, True, True, False]
