"""Arithmetic of Spark's number types: ranges, digits, single precision."""

import math
from collections.abc import Callable
from ctypes import c_float
from decimal import ROUND_HALF_UP, Context, Decimal

from pipeline.network.coercion import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    MAX_PRECISION,
    is_floating,
)
from pipeline.network.evaluating.failing import LeftToSparkError, RowFailedError
from pipeline.network.evaluating.values import Value
from pipeline.network.types import DataType, DecimalType, Scalar

EXACT = Context(prec=400, Emax=10_000, Emin=-10_000, rounding=ROUND_HALF_UP)
"""More digits than any operation on two decimals of 38 digits needs."""


def single(value: float) -> float:
    """The nearest number of single precision."""
    return c_float(value).value


def within(value: int, data_type: DataType) -> int:
    """A whole number that fits into INT or BIGINT.

    Raises:
        RowFailedError: it does not.
    """
    low, high = (INT_MIN, INT_MAX) if data_type is Scalar.INT else (LONG_MIN, LONG_MAX)
    if not low <= value <= high:
        raise RowFailedError(f"{value} does not fit into {data_type}")
    return value


def with_digits(value: Decimal, data_type: DecimalType) -> Decimal:
    """A number with the digits of its type, rounded half up.

    Raises:
        RowFailedError: it has too many before the point.
    """
    rounded = value.quantize(Decimal(1).scaleb(-data_type.scale), context=EXACT)
    if rounded and rounded.adjusted() >= data_type.precision - data_type.scale:
        raise RowFailedError(f"{value} does not fit into {data_type}")
    return rounded or abs(rounded)  # there is no -0


def negated(value: Decimal) -> Decimal:
    """`-x` of a DECIMAL; there is no -0."""
    return value.copy_negate() if value else value


def whole_quotient(left: int, right: int) -> int:
    """The quotient without its fraction, as Java divides."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def arithmetic(operator: str, data_type: DataType) -> Callable[..., Value]:
    """`+ - * / %` on two widened values; `data_type` is the result's."""
    if isinstance(data_type, DecimalType):
        return _of_decimals(operator, data_type)
    if is_floating(data_type):
        return _of_fractions(operator, data_type)
    return _of_wholes(operator, data_type)


def _of_wholes(operator: str, data_type: DataType) -> Callable[[int, int], int]:
    def remainder(left: int, right: int) -> int:
        if right == 0:
            raise RowFailedError("division by zero")
        return left - right * whole_quotient(left, right)

    plain: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: within(a + b, data_type),
        "-": lambda a, b: within(a - b, data_type),
        "*": lambda a, b: within(a * b, data_type),
        "%": remainder,
    }
    return plain[operator]


def _of_fractions(operator: str, data_type: DataType) -> Callable[[float, float], float]:
    keep: Callable[[float], float] = single if data_type is Scalar.FLOAT else float

    def divided(left: float, right: float) -> float:
        if right == 0:
            raise RowFailedError("division by zero")
        return keep(left / right)

    def remainder(left: float, right: float) -> float:
        if right == 0:
            raise RowFailedError("division by zero")
        if math.isinf(left) or math.isnan(left) or math.isnan(right):
            return math.nan
        return math.fmod(left, right)

    plain: dict[str, Callable[[float, float], float]] = {
        "+": lambda a, b: keep(a + b),
        "-": lambda a, b: keep(a - b),
        "*": lambda a, b: keep(a * b),
        "/": divided,
        "%": remainder,
    }
    return plain[operator]


def _of_decimals(operator: str, data_type: DecimalType) -> Callable[[Decimal, Decimal], Decimal]:
    def divided(left: Decimal, right: Decimal) -> Decimal:
        if not right:
            raise RowFailedError("division by zero")
        # Spark rounds to 38 digits behind the point first, and then to those of the result.
        step = Decimal(1).scaleb(-MAX_PRECISION)
        return EXACT.divide(left, right).quantize(step, context=EXACT)

    def remainder(left: Decimal, right: Decimal) -> Decimal:
        if not right:
            raise RowFailedError("division by zero")
        return EXACT.remainder(left, right)

    def product(left: Decimal, right: Decimal) -> Decimal:
        found = EXACT.multiply(left, right)
        if len(found.as_tuple().digits) > MAX_PRECISION:
            raise LeftToSparkError(f"a product of more than {MAX_PRECISION} digits")
        return found

    plain: dict[str, Callable[[Decimal, Decimal], Decimal]] = {
        "+": EXACT.add,
        "-": EXACT.subtract,
        "*": product,
        "/": divided,
        "%": remainder,
    }
    compute = plain[operator]
    return lambda a, b: with_digits(compute(a, b), data_type)
