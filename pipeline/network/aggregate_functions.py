"""The table of aggregate functions: argument types, checks and result types.

No result depends on the order of the rows. Sums are exact: whole numbers are added as
DECIMAL(20,0), floating point as DECIMAL(28,10), rounded half up; a value that does not fit fails
its row. Compared values have one form each, and of two equal rows the first or last in the log is
taken.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from pipeline.network import logic, safe
from pipeline.network.coercion import (
    MAX_PRECISION,
    is_floating,
    is_integral,
    is_numeric,
    is_orderable,
)
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType, DecimalType, Scalar

WHOLE_SUM = DecimalType(20, 0)
FLOATING_SUM = DecimalType(28, 10)
_SUM_DIGITS = 10
"""How many digits a sum of decimals is longer than its summands, as in Spark."""
_WIDE = DecimalType(28, 14)
"""The most digits of a summand, and the most decimal places where there would be more."""
ONE = Term("1", Scalar.INT, constant=1)
_ERROR_LEAST, _ERROR_USUAL, _ERROR_MOST = Decimal("0.001"), Decimal("0.01"), Decimal("0.1")


@dataclass(frozen=True, slots=True)
class Call:
    """One checked call.

    Args:
        function: the kind of aggregation, see `Aggregation`.
        type: the result's type.
        argument: the aggregated expression; None: the rows themselves.
        by: the compared expression of `min_by` and `max_by`.
        parameters: literal numbers.
    """

    function: str
    type: DataType
    nullable: bool
    argument: Term | None = None
    by: Term | None = None
    parameters: tuple[str, ...] = ()
    millis: bool = False


Rule = Callable[[Sequence[Term]], Call]
"""From the arguments, in a valid number, to the call; raises `FaultError`."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """One row of the table.

    Args:
        signature: for documentation: `percentile(x, 0.5)`.
        rule: checks a call.
        least: minimum number of arguments; `most`: maximum.
        filtered: the argument that FILTER replaces by null in the excluded rows.
    """

    signature: str
    rule: Rule
    least: int = 1
    most: int = 1
    filtered: int = 0


def checked(name: str, args: Sequence[Term], *, distinct: bool = False) -> Call:
    """A checked call of a function of the table; the number of arguments is valid.

    `distinct`: of `count`, that it counts different values.

    Raises:
        FaultError: the arguments are invalid.
    """
    for arg in args:
        if arg.type in (Scalar.NULL, Scalar.INTERVAL):
            raise FaultError(f"{name} of {arg.type} means nothing")
    try:
        return (_count_distinct if distinct else AGGREGATES[name].rule)(args)
    except FaultError as error:
        fault = error.fault
        raise FaultError(f"{name} {fault.message}", hint=fault.hint) from None


# --- counting -----------------------------------------------------------------------------------


def _count(args: Sequence[Term]) -> Call:
    return Call("count", Scalar.LONG, nullable=False, argument=args[0] if args else None)


def _count_distinct(args: Sequence[Term]) -> Call:
    return Call("count_distinct", Scalar.LONG, nullable=False, argument=_comparable(args[0]))


def _count_if(args: Sequence[Term]) -> Call:
    return _count([logic.case([(_condition(args[0]), ONE)], None)])


# --- adding -------------------------------------------------------------------------------------


def _sum(args: Sequence[Term]) -> Call:
    exact = _exact(args[0])
    result: DataType = Scalar.DOUBLE
    if is_integral(args[0].type):
        result = Scalar.LONG
    elif isinstance(args[0].type, DecimalType):
        result = DecimalType(min(exact.precision + _SUM_DIGITS, MAX_PRECISION), exact.scale)
    return Call("sum", result, args[0].nullable, safe.cast(args[0], exact))


def _average(args: Sequence[Term]) -> Call:
    return Call("avg", Scalar.DOUBLE, args[0].nullable, safe.cast(args[0], _exact(args[0])))


def _spread(function: str) -> Rule:
    """A variance or its root; a sample variance of a single value is null."""

    def rule(args: Sequence[Term]) -> Call:
        exact = _exact(args[0])
        if exact.scale > _WIDE.scale:
            exact = _WIDE
        nullable = args[0].nullable or function.endswith("_samp")
        return Call(function, Scalar.DOUBLE, nullable, safe.cast(args[0], exact))

    return rule


def _exact(term: Term) -> DecimalType:
    """The type of the summands: ten billion of them fit into a sum of 38 digits."""
    data_type = _number(term).type
    if is_integral(data_type):
        return WHOLE_SUM
    if not isinstance(data_type, DecimalType):
        return FLOATING_SUM
    if data_type.precision <= _WIDE.precision:
        return data_type
    return DecimalType(_WIDE.precision, min(data_type.scale, _WIDE.scale))


# --- comparing ----------------------------------------------------------------------------------


def _extreme(function: str) -> Rule:
    def rule(args: Sequence[Term]) -> Call:
        (arg,) = args
        return Call(
            function, arg.type, arg.nullable, _one_form(_comparable(arg)), millis=arg.millis
        )

    return rule


def _of_conditions(function: str) -> Rule:
    """Whether a condition is true in every row (the least), or in any (the greatest)."""

    def rule(args: Sequence[Term]) -> Call:
        return Call(function, Scalar.BOOLEAN, args[0].nullable, _condition(args[0]))

    return rule


def _of_time(function: str) -> Rule:
    def rule(args: Sequence[Term]) -> Call:
        (arg,) = args
        return Call(function, arg.type, arg.nullable, arg, millis=arg.millis)

    return rule


def _of_extreme(function: str) -> Rule:
    def rule(args: Sequence[Term]) -> Call:
        arg, by = args
        nullable = arg.nullable or by.nullable
        by = _one_form(_comparable(by))
        return Call(function, arg.type, nullable, arg, by, millis=arg.millis)

    return rule


# --- percentiles --------------------------------------------------------------------------------


def _percentile(args: Sequence[Term]) -> Call:
    arg, share = _number(args[0]), _share(args[1])
    if is_floating(arg.type):
        arg = _one_form(safe.cast(arg, Scalar.DOUBLE))
    return Call("percentile", Scalar.DOUBLE, arg.nullable, arg, parameters=(share,))


def _median(args: Sequence[Term]) -> Call:
    return _percentile([args[0], Term("0.5", DecimalType(1, 1), constant=Decimal("0.5"))])


def _approx_percentile(args: Sequence[Term]) -> Call:
    arg, share = _number(args[0]), _share(args[1])
    error = _literal(args[2]) if len(args) > 2 else _ERROR_USUAL  # noqa: PLR2004 - the third one
    if error is None or not _ERROR_LEAST <= error <= _ERROR_MOST:
        raise FaultError(
            f"needs as its error a literal number from {_ERROR_LEAST} to {_ERROR_MOST}",
            hint="0.01: the result is within 1% of the value that stands in that place",
        )
    exact = safe.cast(arg, FLOATING_SUM) if is_floating(arg.type) else arg
    wide = safe.cast(exact, Scalar.DOUBLE)
    parameters = (share, f"{error.normalize():f}")
    return Call("approx_percentile", Scalar.DOUBLE, arg.nullable, wide, parameters=parameters)


def _share(term: Term) -> str:
    value = _literal(term)
    if value is None or not 0 <= value <= 1:
        raise FaultError(
            "needs as its share a literal number from 0 to 1", hint="0.5 stands for the median"
        )
    return f"{value.normalize():f}"


def _literal(term: Term) -> Decimal | None:
    value = term.constant
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    return Decimal(str(value))


# --- arguments ----------------------------------------------------------------------------------


def _number(term: Term) -> Term:
    if not is_numeric(term.type):
        raise FaultError(f"needs numbers, not {term.type}")
    return term


def _comparable(term: Term) -> Term:
    if not is_orderable(term.type):
        raise FaultError(f"cannot compare values of type {term.type}")
    return term


def _condition(term: Term) -> Term:
    if term.type is not Scalar.BOOLEAN:
        raise FaultError(f"needs a condition, not {term.type}", hint="compare it with something")
    return term


def _one_form(term: Term) -> Term:
    """A number in canonical form: equal numbers have several (two zeros, many NaNs)."""
    if not is_floating(term.type):
        return term
    zero, nan = (f"CAST('{text}' AS {term.type})" for text in ("0", "NaN"))
    return safe.strict(f"nanvl({term.sql} + {zero}, {nan})", term.type, [term])


def _rows(
    names: Sequence[str], signature: str, rule: Rule, **how: int
) -> dict[str, AggregateFunction]:
    return dict.fromkeys(names, AggregateFunction(signature, rule, **how))


AGGREGATES: Mapping[str, AggregateFunction] = {
    **_rows(["count"], "count(*), count(x), count(DISTINCT x)", _count),
    **_rows(["count_if"], "count_if(condition)", _count_if),
    **_rows(["sum"], "sum(x)", _sum),
    **_rows(["avg", "mean"], "avg(x)", _average),
    **_rows(["min"], "min(x)", _extreme("min")),
    **_rows(["max"], "max(x)", _extreme("max")),
    **_rows(["bool_and", "every"], "bool_and(condition)", _of_conditions("min")),
    **_rows(["bool_or", "any", "some"], "bool_or(condition)", _of_conditions("max")),
    **_rows(["stddev", "std", "stddev_samp"], "stddev(x)", _spread("stddev_samp")),
    **_rows(["stddev_pop"], "stddev_pop(x)", _spread("stddev_pop")),
    **_rows(["variance", "var_samp"], "variance(x)", _spread("var_samp")),
    **_rows(["var_pop"], "var_pop(x)", _spread("var_pop")),
    **_rows(["percentile"], "percentile(x, 0.95)", _percentile, least=2, most=2),
    **_rows(["median"], "median(x)", _median),
    **_rows(
        ["approx_percentile", "percentile_approx"],
        "approx_percentile(x, 0.95 [, 0.01])",
        _approx_percentile,
        least=2,
        most=3,
    ),
    **_rows(["first", "first_value"], "first(x)", _of_time("first")),
    **_rows(["last", "last_value"], "last(x)", _of_time("last")),
    **_rows(["min_by"], "min_by(x, y)", _of_extreme("min_by"), least=2, most=2, filtered=1),
    **_rows(["max_by"], "max_by(x, y)", _of_extreme("max_by"), least=2, most=2, filtered=1),
}
"""Aggregate functions by each of their names; allowed only in `compute` of an aggregate."""
