"""Functions with their own rules for nulls, types or evaluation order."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from pipeline.network.coercion import common_type, is_integral
from pipeline.network.evaluating import comparing
from pipeline.network.evaluating.calls import UNITS, array_contains, cut_to, element
from pipeline.network.evaluating.casting import cast
from pipeline.network.evaluating.numbers import arithmetic, negated, with_digits, within
from pipeline.network.evaluating.parts import (
    Compute,
    Part,
    Row,
    as_kinds,
    converted,
    strict,
    swallowing,
)
from pipeline.network.evaluating.values import Value
from pipeline.network.function_rules import as_text, double, literal_text, text, time
from pipeline.network.safe import widened
from pipeline.network.term import FaultError, Term
from pipeline.network.types import ArrayType, DataType, DecimalType, MapType, Scalar

Make = Callable[[Term, Sequence[Part]], Compute]
"""From a call and its arguments to its function; raises `FaultError`."""


def operation(operator: str, left: Part, right: Part, *, swallow: bool = False) -> Compute:
    """`+ - * / %` of numbers."""
    one, other, result = widened(operator, left.term, right.term)
    compute = arithmetic(operator, result)
    arguments = [converted(left, one.type), converted(right, other.type)]
    return strict(arguments, swallowing(compute) if swallow else compute)


def absolute(value: Decimal | float, data_type: DataType) -> Decimal | float:
    """`abs(x)`."""
    if isinstance(value, Decimal):
        return value if value >= 0 else negated(value)
    return within(int(abs(value)), data_type) if is_integral(data_type) else abs(value)


def coalesce(term: Term, parts: Sequence[Part]) -> Compute:
    """`coalesce(value, …)`: a value is computed only if all before it are null."""
    values = [converted(part, term.type) for part in parts]

    def run(row: Row) -> Value:
        for value in values:
            found = value(row)
            if found is not None:
                return found
        return None

    return run


def chosen(branches: Sequence[tuple[Compute, Compute]], otherwise: Compute) -> Compute:
    """The value of the first branch whose condition is true; only that is computed."""

    def run(row: Row) -> Value:
        for condition, value in branches:
            if condition(row):
                return value(row)
        return otherwise(row)

    return run


def equality(left: Part, right: Part) -> Compute:
    """`left = right`, in their common type."""
    wide = common_type(left.term.type, right.term.type) or left.term.type
    return strict([converted(left, wide), converted(right, wide)], comparing.equal)


def _if(term: Term, parts: Sequence[Part]) -> Compute:
    when, then, otherwise = parts
    return chosen([(when.compute, converted(then, term.type))], converted(otherwise, term.type))


def _nvl2(term: Term, parts: Sequence[Part]) -> Compute:
    value, given, missing = parts
    there = [(lambda row: value.compute(row) is not None, converted(given, term.type))]
    return chosen(there, converted(missing, term.type))


def _null_if(_term: Term, parts: Sequence[Part]) -> Compute:
    value, other = parts
    same = equality(value, other)

    def run(row: Row) -> Value:
        return None if same(row) else value.compute(row)

    return run


def _concat(_term: Term, parts: Sequence[Part]) -> Compute:
    return strict(as_kinds(parts, [as_text] * len(parts)), lambda *values: "".join(values))


def _extreme(choose: Callable[[list[Value]], Value]) -> Make:
    def make(term: Term, parts: Sequence[Part]) -> Compute:
        values = [converted(part, term.type) for part in parts]
        return lambda row: choose([value(row) for value in values])

    return make


def _not_a_number(_term: Term, parts: Sequence[Part]) -> Compute:
    (value,) = as_kinds(parts, [double])

    def run(row: Row) -> bool:
        found = value(row)
        return found is not None and found != found  # noqa: PLR0124 - only NaN differs from itself

    return run


def _round(term: Term, parts: Sequence[Part]) -> Compute:
    to = term.type
    if not isinstance(to, DecimalType):
        raise FaultError(f"round of {to} is not computed here", hint="that of a DECIMAL is.")
    return strict([parts[0].compute], lambda value: with_digits(value, to))


def _date_trunc(_term: Term, parts: Sequence[Part]) -> Compute:
    unit = literal_text(parts[0].term, "argument 1").lower()
    if unit not in UNITS:
        raise FaultError(
            f"date_trunc('{unit}', …) is not computed here",
            choices=tuple(UNITS),
            hint="a map box in a network can do it.",
        )
    return strict(as_kinds(parts[1:], [time]), cut_to(unit))


def _day_or_time(term: Term, parts: Sequence[Part]) -> Compute:
    """`date(time)`, `to_date(time)`, `to_timestamp(date)`; of a text only Spark."""
    return strict([parts[0].compute], cast(parts[0].term.type, term.type))


def _element_at(_term: Term, parts: Sequence[Part]) -> Compute:
    of_map = isinstance(parts[0].term.type, MapType)
    return strict([part.compute for part in parts], dict.get if of_map else element)


def _try_element_at(_term: Term, parts: Sequence[Part]) -> Compute:
    of_map = isinstance(parts[0].term.type, MapType)
    return strict([part.compute for part in parts], dict.get if of_map else swallowing(element))


def _array_contains(_term: Term, parts: Sequence[Part]) -> Compute:
    value, wanted = parts
    of = value.term.type
    to = of.element if isinstance(of, ArrayType) else Scalar.NULL
    return strict([value.compute, converted(wanted, to)], array_contains)


def _locate(_term: Term, parts: Sequence[Part]) -> Compute:
    if len(parts) > 2:  # noqa: PLR2004 - the third is the start
        raise FaultError("locate with a start is not computed here", hint="instr(text, part) is.")
    return strict(as_kinds(parts, [text, text]), lambda part, value: value.find(part) + 1)


def _tried(operator: str) -> Make:
    return lambda _term, parts: operation(operator, parts[0], parts[1], swallow=True)


SPECIAL: Mapping[str, Make] = {
    "if": _if,
    "coalesce": coalesce,
    "nvl": coalesce,
    "nvl2": _nvl2,
    "nullif": _null_if,
    "isnull": lambda _term, parts: lambda row: parts[0].compute(row) is None,
    "isnotnull": lambda _term, parts: lambda row: parts[0].compute(row) is not None,
    "concat": _concat,
    "greatest": _extreme(comparing.greatest),
    "least": _extreme(comparing.least),
    "abs": lambda term, parts: strict([parts[0].compute], lambda v: absolute(v, term.type)),
    "isnan": _not_a_number,
    "mod": lambda _term, parts: operation("%", parts[0], parts[1]),
    "try_add": _tried("+"),
    "try_subtract": _tried("-"),
    "try_multiply": _tried("*"),
    "try_divide": _tried("/"),
    "try_mod": _tried("%"),
    "round": _round,
    "date_trunc": _date_trunc,
    "date": _day_or_time,
    "to_date": _day_or_time,
    "to_timestamp": _day_or_time,
    "element_at": _element_at,
    "try_element_at": _try_element_at,
    "array_contains": _array_contains,
    "locate": _locate,
}
"""By their first name."""
