"""The order of values: NaN equals itself and is greater than every number; -0.0 is 0.0."""

import math
from collections.abc import Callable
from typing import Any

from pipeline.network.evaluating.values import Value

Test = Callable[[Value, Value], bool]


def _nan(value: Value) -> bool:
    return isinstance(value, float) and math.isnan(value)


def equal(left: Value, right: Value) -> bool:
    """Whether two values of one type are the same."""
    return bool(left == right) or (_nan(left) and _nan(right))


def less(left: Any, right: Any) -> bool:
    """Whether one value precedes another of its type. Texts are compared by their UTF-8 bytes."""
    if _nan(left) or _nan(right):
        return not _nan(left) and _nan(right)
    return bool(left < right)


OPERATORS: dict[str, Test] = {
    "=": equal,
    "<>": lambda a, b: not equal(a, b),
    "<": less,
    "<=": lambda a, b: not less(b, a),
    ">": lambda a, b: less(b, a),
    ">=": lambda a, b: not less(a, b),
}
"""Comparisons of two non-null values of one type."""


def same(left: Value, right: Value) -> bool:
    """`<=>`: nulls are equal to each other."""
    if left is None or right is None:
        return left is None and right is None
    return equal(left, right)


def member(value: Value, options: list[Value]) -> bool | None:
    """`value IN (option, …)`."""
    if value is None:
        return None
    if any(option is not None and equal(value, option) for option in options):
        return True
    return None if None in options else False


def greatest(values: list[Value]) -> Value:
    """The greatest non-null value."""
    found = None
    for value in values:
        if value is not None and (found is None or less(found, value)):
            found = value
    return found


def least(values: list[Value]) -> Value:
    """The least non-null value."""
    found = None
    for value in values:
        if value is not None and (found is None or less(value, found)):
            found = value
    return found
