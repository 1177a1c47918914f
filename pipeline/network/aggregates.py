"""Aggregate functions inside `compute`: each call becomes a placeholder column.

`sum(a * b) / sum(b)` has two aggregations, over the input's columns, and one expression over their
results.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pipeline.network import logic, sql_text
from pipeline.network.aggregate_functions import AGGREGATES, ONE, Call, checked
from pipeline.network.expressions import Walk, finished
from pipeline.network.model import ColumnRef, Expression, Origin
from pipeline.network.scope import Scope
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType

PLACEHOLDER = "__agg"
_FILTER = "what follows WHERE"


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One call of an aggregate function inside `compute`.

    Args:
        name: the placeholder column of its result in the `compute` expressions.
        function: `count`, `count_distinct`, `sum`, `avg`, `min`, `max`, `var_pop`, `var_samp`,
            `stddev_pop`, `stddev_samp`, `percentile`, `approx_percentile`, `first`, `last`,
            `min_by` or `max_by`.
        argument: the aggregated expression over the input's columns; None for `count(*)`.
        type: the result's type.
        by: the compared expression of `min_by` and `max_by`.
        parameters: literal numbers: the share of a percentile, the error of an approximate one.
    """

    name: str
    function: str
    argument: Expression | None
    type: DataType
    nullable: bool
    by: Expression | None = None
    parameters: tuple[str, ...] = ()

    @property
    def reads(self) -> tuple[Expression, ...]:
        """The expressions over the input's columns."""
        return tuple(e for e in (self.argument, self.by) if e is not None)

    @property
    def call(self) -> Hashable:
        """Identity of the call: equal for two calls that always have the same result."""
        return (self.function, _sql(self.argument), _sql(self.by), self.parameters)


class Collector:
    """Collects the aggregate calls of one `compute`; equal calls share a placeholder.

    Args:
        rows: the columns of the input.
        found: the aggregations, in order.
    """

    def __init__(self, rows: Scope) -> None:
        self.rows = rows
        self.found: list[Aggregation] = []

    def walk(self, groups: Scope, origin: Origin) -> Walk:
        """A walk over one expression of `compute`, located at `origin`."""
        walk = Walk(groups)

        def aggregate(name: str, node: exp.Expr, when: exp.Expr | None) -> Term | None:
            call = self._take(walk, name, node, when)
            if call is None:
                return None
            where = f" FILTER(WHERE {_written(when)})" if when is not None else ""
            return self._placeholder(call, _written(node) + where, origin)

        walk.aggregate = aggregate
        return walk

    def _take(self, walk: Walk, name: str, node: exp.Expr, when: exp.Expr | None) -> Call | None:
        """The checked call; None: there are faults, now in `walk`."""
        inner = Walk(self.rows, _refuse_nested)
        args = [inner.term(arg) for arg in _arguments(name, node.expressions)]
        condition = inner.term(when)
        if inner.faults:
            walk.faults.extend(inner.faults)
            return None
        terms = [arg for arg in args if arg is not None]
        if condition is not None:
            terms = terms or [ONE]
            at, condition = AGGREGATES[name].filtered, logic.condition(condition, _FILTER)
            terms[at] = logic.case([(condition, terms[at])], None)
        return checked(name, terms, distinct=_is_distinct(node.expressions) and name == "count")

    def _placeholder(self, call: Call, text: str, origin: Origin) -> Term:
        def expression(term: Term | None) -> Expression | None:
            return None if term is None else finished(text, term, origin)

        made = Aggregation(
            name=f"{PLACEHOLDER}{len(self.found)}",
            function=call.function,
            argument=expression(call.argument),
            type=call.type,
            nullable=call.nullable,
            by=expression(call.by),
            parameters=call.parameters,
        )
        same = next((known for known in self.found if known.call == made.call), None)
        if same is None:
            self.found.append(made)
        ref = ColumnRef((same or made).name)
        return Term(
            sql_text.column(ref),
            call.type,
            call.nullable,
            columns=frozenset((ref,)),
            millis=call.millis,
        )


def _refuse_nested(name: str, _node: exp.Expr, _when: exp.Expr | None) -> Term | None:
    raise FaultError(
        f"{name} stands inside another aggregate function", hint="aggregate in two boxes"
    )


def _written(node: exp.Expr) -> str:
    """A part of an expression as the user wrote it, except for spaces."""
    return node.sql("spark", normalize_functions=False)


def _sql(expression: Expression | None) -> str | None:
    return None if expression is None else expression.sql


def _is_distinct(args: Sequence[exp.Expr]) -> bool:
    return len(args) == 1 and isinstance(args[0], exp.Distinct)


def _arguments(name: str, args: Sequence[exp.Expr]) -> Sequence[exp.Expr]:
    """The arguments as written, without DISTINCT; none for `count(*)`."""
    function = AGGREGATES[name]
    distinct = _is_distinct(args)
    if any(isinstance(arg, exp.Star) for arg in (args[0].expressions if distinct else args)):
        if name == "count" and len(args) == 1 and not distinct:
            return ()
        shown = f"{name}({'DISTINCT ' if distinct else ''}*)"
        raise FaultError(f"{shown} is not supported: name the column", hint=function.signature)
    if distinct:
        if name not in ("count", "min", "max") or len(args[0].expressions) != 1:
            raise FaultError(
                f"{name}(DISTINCT …) is not supported", hint="count(DISTINCT x) takes one value"
            )
        return args[0].expressions
    if not function.least <= len(args) <= function.most:
        counts = dict.fromkeys((function.least, function.most))
        takes = " or ".join(map(str, counts))
        noun = "argument" if function.most == 1 else "arguments"
        raise FaultError(f"{name} takes {takes} {noun}, not {len(args)}", hint=function.signature)
    return args
