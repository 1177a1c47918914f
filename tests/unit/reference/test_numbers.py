from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from pipeline.reference.numbers import average, decimal_of, deviation, percentile


def test_the_eleventh_digit_is_rounded_half_up() -> None:
    """Away from zero, on both sides of it."""
    assert decimal_of(0.00000000005) == Decimal("1E-10")
    assert decimal_of(-0.00000000005) == Decimal("-1E-10")
    assert decimal_of(0.000000000049) == 0


@given(st.permutations([0.1, 0.2, 0.3, 1e9, -1e9, 33.33]))
def test_an_average_is_independent_of_the_order(numbers: list[float]) -> None:
    """Floating point alone would not be."""
    assert average(numbers) == 33.93 / 6


def test_a_deviation_is_that_of_a_sample() -> None:
    """Rounded half up to this many digits; one number alone has none."""
    assert deviation([1.0, 2.0, 3.0, 4.0], 3) == 1.291
    assert deviation([0.1, 0.1, 0.1], 6) == 0.0
    assert deviation([5.0], 6) is None


def test_a_percentile_is_interpolated_between_two_numbers() -> None:
    """At both ends it is the least and the greatest; the order is irrelevant."""
    assert [percentile([4.0, 1.0, 2.0], share) for share in (0, 0.5, 0.75, 1)] == [1, 2, 3, 4]
    assert percentile([7.0], 0.95) == 7.0
