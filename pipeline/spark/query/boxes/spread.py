"""Variances and standard deviations in Spark SQL, from exact sums.

A sum of squares less a squared sum cancels nearly everything if the values are close together, and
a running mean depends on the order of rows. So all sums and all terms that cancel are exact;
floating point is used only where all numbers have the same sign.

A value is taken as a whole number X of its last digits, below 10^28, and X as H * B + L with
B = 10^14: a sum of squares of X would not fit into 38 digits, but sums of H * H, H * L and L * L
do, for up to 10^9 values. With M = Mh * B + Ml, the mean rounded to a whole number, the sum of
(X - M)^2 is B^2 * hh + B * 2 * hl + ll, where hh, hl and ll are the sums of (H - Mh)^2,
(H - Mh) * (L - Ml) and (L - Ml)^2. Carried over, as digits are, it is B^2 * a + B * b + c with b
and c from 0 to B.

The true mean differs from M by d / n, so this sum is too large by d^2 / n. That is at most half of
it: whole numbers cannot all lie closer to a mean that is none.
"""

from pipeline.errors import BrokenInvariantError
from pipeline.network.types import DataType, DecimalType
from pipeline.spark.query.sql import let

FUNCTIONS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
VALUES_MAX = 10**9
"""With more values, the sums might not fit."""
_HALF_DIGITS = 14
_B = f"{10**_HALF_DIGITS}BD"
_WIDE = "DECIMAL(38,0)"


def call(function: str, argument: str, argument_type: DataType) -> str:
    """The aggregate call; null where there are too few values, or too many.

    Args:
        function: one of `FUNCTIONS`.
        argument: SQL of the values.
        argument_type: a DECIMAL of at most 28 digits, at most 14 of them behind the point.
    """
    if not isinstance(argument_type, DecimalType):
        raise BrokenInvariantError(f"{function} cannot add {argument_type}")
    sample, root = function.endswith("_samp"), function.startswith("stddev")
    divisor = "CAST(v.n - 1 AS DOUBLE)" if sample else "CAST(v.n AS DOUBLE)"
    variance = f"{_squares()} / {divisor}"
    unit = f"1e{argument_type.scale}D"
    value = f"sqrt({variance}) / {unit}" if root else f"{variance} / {unit} / {unit}"
    enough = f"v.n BETWEEN {2 if sample else 1} AND {VALUES_MAX}"
    sums = _sums(argument, argument_type.scale)
    return let("v", sums, f"CASE WHEN {enough} THEN {value} END")


def _sums(argument: str, scale: int) -> str:
    """Number of values, and the exact sums of their halves and of the halves' products."""
    unit = f"{10 ** (_HALF_DIGITS - scale)}BD"
    half = f"DECIMAL({_HALF_DIGITS},0)"
    high = f"CAST({argument} DIV {unit} AS {half})"
    low = f"CAST({argument} % {unit} * {10**scale}BD AS {half})"
    sums = {"h": high, "l": low}
    for name, product in (("hh", (high, high)), ("hl", (high, low)), ("ll", (low, low))):
        sums[name] = f"CAST({' * '.join(product)} AS DECIMAL({2 * _HALF_DIGITS},0))"
    summed = ", ".join(f"try_sum({part}) AS {name}" for name, part in sums.items())
    return (
        f"struct(count({argument}) AS n, CAST(count({argument}) AS DECIMAL(10,0)) AS k, {summed})"
    )


def _squares() -> str:
    """The sum of the squared distances from the mean, computed from `_sums`, called v."""
    total = f"v.h * {_B} + v.l"
    mean = f"CAST(round(({total}) / v.k, 0) AS DECIMAL(29,0))"
    halves = f"struct(m AS m, CAST(m DIV {_B} AS DECIMAL(15,0)) AS h, m % {_B} AS l)"
    moments = (
        "struct("
        "v.hh - 2BD * p.h * v.h + v.k * p.h * p.h AS hh, "
        "v.hl - p.h * v.l - p.l * v.h + v.k * p.h * p.l AS hl, "
        "v.ll - 2BD * p.l * v.l + v.k * p.l * p.l AS ll)"
    )
    beside = f"CAST({total} - v.k * p.m AS DOUBLE)"
    squares = (
        "1e28D * CAST(e.hh + b.carry AS DOUBLE) + 1e14D * CAST(b.rest AS DOUBLE)"
        f" + CAST(c.rest AS DOUBLE) - {beside} * {beside} / CAST(v.n AS DOUBLE)"
    )
    for name, value in (
        ("b", _carried("2BD * e.hl + c.carry")),
        ("c", _carried("e.ll")),
        ("e", moments),
        ("p", let("m", mean, halves)),
    ):
        squares = let(name, value, squares)
    return squares


def _carried(number: str) -> str:
    """A whole number as `carry` * B + `rest`, rest from 0 to B."""
    parts = f"struct(CAST((x - pmod(x, {_B})) / {_B} AS {_WIDE}) AS carry, pmod(x, {_B}) AS rest)"
    return let("x", number, parts)
