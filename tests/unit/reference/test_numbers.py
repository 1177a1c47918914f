from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pipeline.reference.numbers import average, decimal_of


def test_the_eleventh_digit_is_rounded_half_up() -> None:
    """Away from zero, on both sides of it."""
    assert decimal_of(0.00000000005) == Decimal("1E-10")
    assert decimal_of(-0.00000000005) == Decimal("-1E-10")
    assert decimal_of(0.000000000049) == 0


@given(st.permutations([0.1, 0.2, 0.3, 1e9, -1e9, 33.33]))
def test_an_average_does_not_depend_on_the_order(numbers: list[float]) -> None:
    """Floating point alone would."""
    assert average(numbers) == 33.93 / 6
