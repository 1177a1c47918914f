"""Types of operations: the rules of Spark 4.2 in ANSI mode, without strings as numbers.

Spark would compare a string with a number by casting the string, which fails on the first row that
is no number. Here the two are incompatible; a CAST in the expression makes the choice explicit.
"""

from decimal import Decimal

from pipeline.network.types import ArrayType, DataType, DecimalType, MapType, Scalar, StructType

MAX_PRECISION = 38
MIN_ADJUSTED_SCALE = 6
"""Decimal places that Spark keeps at least when a result has too many digits."""

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

INTEGRAL = (Scalar.INT, Scalar.LONG)
FLOATING = (Scalar.FLOAT, Scalar.DOUBLE)
_INTEGRAL_AS_DECIMAL = {Scalar.INT: DecimalType(10, 0), Scalar.LONG: DecimalType(20, 0)}


def is_integral(data_type: DataType) -> bool:
    """Whether it is INT or BIGINT."""
    return data_type in INTEGRAL


def is_floating(data_type: DataType) -> bool:
    """Whether it is FLOAT or DOUBLE."""
    return data_type in FLOATING


def is_numeric(data_type: DataType) -> bool:
    """Whether it is a number type."""
    return isinstance(data_type, DecimalType) or data_type in (*INTEGRAL, *FLOATING)


def is_orderable(data_type: DataType) -> bool:
    """Whether its values can be compared, grouped and joined on: every type without parts."""
    return not isinstance(data_type, ArrayType | MapType | StructType)


def as_decimal(data_type: DataType) -> DecimalType:
    """The decimal type that contains every value of a whole-number or decimal type."""
    if isinstance(data_type, DecimalType):
        return data_type
    if isinstance(data_type, Scalar) and data_type in _INTEGRAL_AS_DECIMAL:
        return _INTEGRAL_AS_DECIMAL[data_type]
    raise ValueError(f"{data_type} is no exact number")


def decimal_of(value: Decimal) -> DecimalType:
    """The smallest decimal type of a literal."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not finite")  # noqa: TRY004 - a wrong value, not a wrong type
    scale = max(0, -exponent)
    return DecimalType(max(len(digits) + max(0, exponent), scale, 1), scale)


def common_type(left: DataType, right: DataType) -> DataType | None:
    """The type that both sides are widened to, as in CASE, coalesce and comparisons; None: none.

    >>> str(common_type(Scalar.INT, Scalar.LONG)), str(common_type(Scalar.INT, DecimalType(2, 1)))
    ('BIGINT', 'DECIMAL(11,1)')
    """
    if left == right:
        return left
    if left is Scalar.NULL:
        return right
    if right is Scalar.NULL:
        return left
    if is_numeric(left) and is_numeric(right):
        return _common_number(left, right)
    if {left, right} == {Scalar.DATE, Scalar.TIMESTAMP}:
        return Scalar.TIMESTAMP
    return None


def _common_number(left: DataType, right: DataType) -> DataType:
    if is_floating(left) or is_floating(right):
        return Scalar.DOUBLE  # FLOAT would lose digits, so Spark widens to DOUBLE
    if isinstance(left, DecimalType) or isinstance(right, DecimalType):
        one, other = as_decimal(left), as_decimal(right)
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale)
        return _prefer_integral_digits(digits, scale)
    return Scalar.LONG


def _prefer_integral_digits(digits: int, scale: int) -> DecimalType:
    if digits + scale <= MAX_PRECISION:
        return DecimalType(digits + scale, scale)
    return DecimalType(MAX_PRECISION, max(0, MAX_PRECISION - digits))


def decimal_result(operator: str, left: DecimalType, right: DecimalType) -> DecimalType:
    """The type of `left operator right` for `+ - * / %` on decimals.

    >>> str(decimal_result("*", DecimalType(10, 2), DecimalType(10, 2)))
    'DECIMAL(21,4)'
    """
    left_digits, right_digits = left.precision - left.scale, right.precision - right.scale
    if operator == "*":
        return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
    if operator == "/":
        scale = max(MIN_ADJUSTED_SCALE, left.scale + right.precision + 1)
        return _adjusted(left_digits + right.scale + scale, scale)
    scale = max(left.scale, right.scale)
    if operator == "%":
        return _adjusted(min(left_digits, right_digits) + scale, scale)
    return _adjusted(max(left_digits, right_digits) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> DecimalType:
    """Reduce a result to 38 digits: decimal places are cut first, but not below six."""
    if precision <= MAX_PRECISION:
        return DecimalType(precision, scale)
    kept = max(MAX_PRECISION - (precision - scale), min(scale, MIN_ADJUSTED_SCALE))
    return DecimalType(MAX_PRECISION, kept)


def contains(wide: DecimalType, narrow: DecimalType) -> bool:
    """Whether every value of `narrow` is, unchanged, a value of `wide`."""
    return (
        wide.scale >= narrow.scale
        and wide.precision - wide.scale >= narrow.precision - narrow.scale
    )
