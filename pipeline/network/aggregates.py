"""Aggregate functions inside `compute`: each call becomes a placeholder column.

`sum(a * b) / sum(b)` has two aggregations, over the input's columns, and one expression over their
results. Sums do not depend on the order of the rows: whole numbers are added as DECIMAL(20,0),
floating point as DECIMAL(28,10), rounded half up; what does not fit fails the row it comes from.
"""

from collections.abc import Sequence

from sqlglot import exp

from pipeline.network import logic, safe, sql_text
from pipeline.network.coercion import (
    MAX_PRECISION,
    is_integral,
    is_numeric,
    is_orderable,
)
from pipeline.network.expressions import Walk, finished
from pipeline.network.functions import AGGREGATES
from pipeline.network.model import ColumnRef, Expression, Origin
from pipeline.network.scope import Scope
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType, DecimalType, Scalar

PLACEHOLDER = "__agg"

WHOLE_SUM = DecimalType(20, 0)
FLOATING_SUM = DecimalType(28, 10)
_SUM_DIGITS = 10
"""How many digits a sum of decimals may be longer than its parts, as in Spark."""


class Collector:
    """Collects the aggregate calls of one `compute`; equal calls share a placeholder.

    Args:
        rows: the columns of the input.
        found: name, function, argument, type and nullable of each aggregation, in order.
    """

    def __init__(self, rows: Scope) -> None:
        self.rows = rows
        self.found: list[tuple[str, str, Expression | None, DataType, bool]] = []

    def walk(self, groups: Scope, origin: Origin) -> Walk:
        """A walk over one expression of `compute`, which stands at `origin`."""
        walk = Walk(groups)

        def aggregate(name: str, node: exp.Expr, when: exp.Expr | None) -> Term | None:
            taken = self._take(walk, name, node, when)
            return None if taken is None else self._placeholder(*taken, node, origin)

        walk.aggregate = aggregate
        return walk

    def _take(
        self, walk: Walk, name: str, node: exp.Expr, when: exp.Expr | None
    ) -> tuple[str, Term | None] | None:
        """The function and its argument; None: there are faults, now in `walk`."""
        inner = Walk(self.rows, _refuse_nested)
        function, arg = _argument(inner, name, node.expressions)
        condition = inner.term(when)
        if inner.faults:
            walk.faults.extend(inner.faults)
            return None
        if when is not None and condition is not None:
            arg = logic.case([(condition, arg or _one())], None)
        return function, arg

    def _placeholder(self, function: str, arg: Term | None, node: exp.Expr, origin: Origin) -> Term:
        made, data_type, nullable = _typed(function, arg)
        argument = None if made is None else finished(node.sql("spark"), made, origin)
        millis = made is not None and made.millis and function in ("min", "max")
        for name, known, known_argument, *_ in self.found:
            if known == function and _sql(known_argument) == _sql(argument):
                return _column(name, data_type, nullable=nullable, millis=millis)
        name = f"{PLACEHOLDER}{len(self.found)}"
        self.found.append((name, function, argument, data_type, nullable))
        return _column(name, data_type, nullable=nullable, millis=millis)


def _refuse_nested(name: str, _node: exp.Expr, _when: exp.Expr | None) -> Term | None:
    raise FaultError(
        f"{name} stands inside another aggregate function", hint="aggregate in two boxes"
    )


def _one() -> Term:
    return Term("1", Scalar.INT, constant=1)


def _sql(expression: Expression | None) -> str | None:
    return None if expression is None else expression.sql


def _column(name: str, data_type: DataType, *, nullable: bool, millis: bool) -> Term:
    ref = ColumnRef(name)
    return Term(sql_text.column(ref), data_type, nullable, columns=frozenset((ref,)), millis=millis)


def _argument(walk: Walk, name: str, args: Sequence[exp.Expr]) -> tuple[str, Term | None]:
    """The function that is meant, and its argument as a term of the rows; faults are in `walk`."""
    if len(args) != 1:
        raise FaultError(f"{name} takes 1 argument, not {len(args)}", hint=AGGREGATES[name])
    (arg,) = args
    if isinstance(arg, exp.Star) and name == "count":
        return "count", None
    if isinstance(arg, exp.Distinct):
        if name not in ("count", "min", "max") or len(arg.expressions) != 1:
            raise FaultError(
                f"{name}(DISTINCT …) is not supported", hint="count(DISTINCT x) takes one value"
            )
        function = "count_distinct" if name == "count" else name
        return function, walk.term(arg.expressions[0])
    term = walk.term(arg)
    if term is None or name != "count_if":
        return ("avg" if name == "mean" else name), term
    return "count", logic.case([(logic.condition(term, "what count_if counts"), _one())], None)


def _typed(function: str, arg: Term | None) -> tuple[Term | None, DataType, bool]:
    """The argument as it is aggregated, the result's type, and whether that can be null."""
    if arg is None:
        return None, Scalar.LONG, False
    if arg.type in (Scalar.NULL, Scalar.INTERVAL):
        raise FaultError(f"{function} of {arg.type} means nothing")
    if function == "count":
        return arg, Scalar.LONG, False
    if function in ("count_distinct", "min", "max"):
        if not is_orderable(arg.type):
            raise FaultError(f"{function}: values of type {arg.type} cannot be compared")
        counts = function == "count_distinct"
        return arg, Scalar.LONG if counts else arg.type, arg.nullable and not counts
    if not is_numeric(arg.type):
        raise FaultError(f"{function} needs numbers, not {arg.type}")
    result, exact = _summed(arg.type)
    return safe.cast(arg, exact), result if function == "sum" else Scalar.DOUBLE, arg.nullable


def _summed(data_type: DataType) -> tuple[DataType, DataType]:
    """The type of a sum, and the exact type in which its parts are added."""
    if is_integral(data_type):
        return Scalar.LONG, WHOLE_SUM
    if isinstance(data_type, DecimalType):
        digits = min(data_type.precision + _SUM_DIGITS, MAX_PRECISION)
        return DecimalType(digits, data_type.scale), data_type
    return Scalar.DOUBLE, FLOATING_SUM
