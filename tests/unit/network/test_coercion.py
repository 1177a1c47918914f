"""Types of operations, as Spark 4.2 has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.network.coercion import common_type, contains, decimal_result
from pipeline.network.types import ArrayType, DataType, DecimalType, Scalar

SCALARS = [s for s in Scalar if s is not Scalar.INTERVAL]
DECIMALS = st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: DecimalType(p, s)))
TYPES: st.SearchStrategy[DataType] = st.one_of(st.sampled_from(SCALARS), DECIMALS)


@pytest.mark.parametrize(
    ("left", "right", "wide"),
    [
        (Scalar.INT, Scalar.LONG, "BIGINT"),
        (Scalar.INT, Scalar.FLOAT, "DOUBLE"),
        (Scalar.FLOAT, Scalar.FLOAT, "FLOAT"),
        (Scalar.LONG, DecimalType(10, 2), "DECIMAL(22,2)"),
        (DecimalType(38, 2), DecimalType(38, 10), "DECIMAL(38,2)"),
        (DecimalType(10, 2), Scalar.FLOAT, "DOUBLE"),
        (Scalar.DATE, Scalar.TIMESTAMP, "TIMESTAMP"),
        (Scalar.NULL, Scalar.STRING, "STRING"),
        (Scalar.STRING, Scalar.INT, None),
        (Scalar.STRING, Scalar.TIMESTAMP, None),
        (Scalar.BOOLEAN, Scalar.INT, None),
        (ArrayType(Scalar.INT, element_nullable=False), Scalar.INT, None),
    ],
)
def test_common_type(left: DataType, right: DataType, wide: str | None) -> None:
    """Numbers widen, dates become times, text stays text."""
    found = common_type(left, right)
    assert (None if found is None else str(found)) == wide


@given(TYPES, TYPES)
def test_common_type_is_independent_of_the_order(left: DataType, right: DataType) -> None:
    """Swapping the sides changes nothing."""
    assert common_type(left, right) == common_type(right, left)


@given(DECIMALS, DECIMALS, st.sampled_from("+-*/%"))
def test_decimal_results_are_types(left: DecimalType, right: DecimalType, operator: str) -> None:
    """Every operation stays within the limits of a decimal."""
    result = decimal_result(operator, left, right)
    assert 1 <= result.precision <= 38
    assert 0 <= result.scale <= result.precision


@given(DECIMALS, DECIMALS)
def test_a_wider_type_loses_no_digit(wide: DecimalType, narrow: DecimalType) -> None:
    """A wider type of a narrower one is also their common type."""
    if contains(wide, narrow):
        assert common_type(wide, narrow) == wide
