"""Compiler of an expression's text to a Python function of a row, without Spark.

The text is checked as that of a box is. Then the same syntax tree is read again, and each node
becomes a function of a row. The types are those of the check, so that both ways widen, compare and
overflow alike.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pipeline.network import literals, parsing
from pipeline.network.coercion import common_type
from pipeline.network.evaluating import calls, comparing
from pipeline.network.evaluating.casting import cast
from pipeline.network.evaluating.failing import LeftToSparkError, RowFailedError
from pipeline.network.evaluating.numbers import negated, single, whole_quotient, within
from pipeline.network.evaluating.parts import (
    Compute,
    Part,
    Row,
    as_kinds,
    converted,
    strict,
    swallowing,
)
from pipeline.network.evaluating.special import SPECIAL, chosen, equality, operation
from pipeline.network.expressions import ARITHMETIC, COMPARISONS, Walk, check, column_parts
from pipeline.network.functions import FUNCTIONS
from pipeline.network.logic import member_type
from pipeline.network.model import Expression
from pipeline.network.scope import Scope, struct_field
from pipeline.network.term import Fault, FaultError, Term
from pipeline.network.types import DataType, DecimalType, MapType, Scalar, StructType

_WORDS: Mapping[type[exp.Expr], str] = {exp.RegexpLike: "RLIKE", exp.Filter: "FILTER"}
_TIMES = {Scalar.INTERVAL, Scalar.TIMESTAMP, Scalar.DATE}


@dataclass(frozen=True, slots=True)
class Computation:
    """A checked expression and its function.

    Args:
        expression: as a box would have it.
        compute: from a row to the value; raises `NoValueError` if there is none.
    """

    expression: Expression
    compute: Compute


def computation(
    text: str, scope: Scope, *, wants: DataType | None = None, named: bool = False
) -> Computation | tuple[Fault, ...]:
    """The computation of an expression over the columns of one stream, or its faults.

    Args:
        text: as the user wrote it.
        scope: of one stream, not of a join.
        wants: the required type; None: any.
        named: as for `parsing.parse`.
    """
    checked = check(text, scope, wants=wants, named=named)
    if checked.expression is None:
        return checked.faults
    try:
        part = _Reading(scope).part(parsing.parse(text, named=named))
    except FaultError as error:
        return (error.fault,)
    except LeftToSparkError as error:  # in a part that is a literal
        return (Fault(str(error)),)
    return Computation(checked.expression, part.compute)


class _Reading:
    """Reads one checked syntax tree."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def part(self, node: exp.Expr) -> Part:
        """The function of a node.

        Raises:
            FaultError: only Spark computes it.
        """
        while isinstance(node, exp.Paren):
            node = node.this
        term = self._term(node)
        if term.constant is not None:
            value = single(float(term.constant)) if term.type is Scalar.FLOAT else term.constant
            return Part(term, lambda _row: value)
        kind = type(node)
        if kind in ARITHMETIC:
            return Part(term, self._arithmetic(ARITHMETIC[kind], node))
        if kind in COMPARISONS:
            return Part(term, self._comparison(COMPARISONS[kind], node))
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise FaultError(
                f"{_WORDS.get(kind, kind.__name__)} is not computed here",
                hint="a filter or map box can do it.",
            )
        return Part(term, handler(self, node, term))

    def _term(self, node: exp.Expr) -> Term:
        walk = Walk(self._scope)
        term = walk.term(node)
        if term is None:
            raise FaultError(walk.faults[0].message)
        return term

    def _two(self, node: exp.Expr) -> tuple[Part, Part]:
        return self.part(node.this), self.part(node.expression)

    # --- names, literals, casts -----------------------------------------------------------------

    def column(self, node: exp.Expr, _term: Term) -> Compute:
        """`a`, `a.b`."""
        names = [part.name for part in column_parts(node)]
        term = self._scope.resolve(names[:1])
        name = term.plain.name if term.plain else names[0]
        compute: Compute = lambda row: row[name]  # noqa: E731 - it is composed further below
        for field in names[1:]:
            compute = _field(compute, term, field)
            term = struct_field(term, field)
        return compute

    def dot(self, node: exp.Expr, _term: Term) -> Compute:
        """`(…).field`."""
        inner = self.part(node.this)
        return _field(inner.compute, inner.term, node.expression.name)

    def bracket(self, node: exp.Expr, _term: Term) -> Compute:
        """`array[n]`, `map[key]`."""
        parts = [self.part(node.this), self.part(node.expressions[0])]
        of_map = isinstance(parts[0].term.type, MapType)
        return strict([part.compute for part in parts], dict.get if of_map else calls.item)

    def negative(self, node: exp.Expr, term: Term) -> Compute:
        """Unary minus."""
        inner = self.part(node.this)
        if isinstance(term.type, DecimalType):
            return strict([inner.compute], negated)
        if term.type in (Scalar.FLOAT, Scalar.DOUBLE):
            return strict([inner.compute], lambda value: -value)
        return strict([inner.compute], lambda value: within(-value, term.type))

    def typed_literal(self, node: exp.Expr, term: Term) -> Compute:
        """`TIMESTAMP '…'`, `DATE '…'`."""
        if not isinstance(node.this, exp.Literal):
            return self.cast(node, term)
        text = node.this.name
        value = literals.micros(text) if term.type is Scalar.TIMESTAMP else literals.days(text)
        return lambda _row: value

    def cast(self, node: exp.Expr, term: Term) -> Compute:
        """`CAST(x AS t)`, `TRY_CAST(x AS t)`."""
        inner = self.part(node.this)
        change = cast(inner.term.type, term.type)
        return strict([inner.compute], swallowing(change) if node.args.get("safe") else change)

    # --- operators ------------------------------------------------------------------------------

    def _arithmetic(self, operator: str, node: exp.Expr) -> Compute:
        left, right = self._two(node)
        if not _TIMES & {left.term.type, right.term.type}:
            return operation(operator, left, right)
        plain: Mapping[str, Callable[[int, int], int]] = {
            "+": int.__add__,
            "-": int.__sub__,
            "*": int.__mul__,
        }
        compute = plain[operator]
        return strict(
            [left.compute, right.compute], lambda a, b: within(compute(a, b), Scalar.LONG)
        )

    def _comparison(self, operator: str, node: exp.Expr) -> Compute:
        left, right = self._two(node)
        if operator == "<=>":
            one, other = _widened(left, right)
            return lambda row: comparing.same(one(row), other(row))
        return _compared(operator, left, right)

    def int_div(self, node: exp.Expr, _term: Term) -> Compute:
        """`a DIV b`."""
        sides = [converted(part, Scalar.LONG) for part in self._two(node)]

        def divided(left: int, right: int) -> int:
            if right == 0:
                raise RowFailedError("division by zero")
            return within(whole_quotient(left, right), Scalar.LONG)

        return strict(sides, divided)

    def conjunction(self, node: exp.Expr, _term: Term) -> Compute:
        """`a AND b`."""
        left, right = self._two(node)
        return _both(left.compute, right.compute)

    def disjunction(self, node: exp.Expr, _term: Term) -> Compute:
        """`a OR b`."""
        left, right = (part.compute for part in self._two(node))

        def run(row: Row) -> bool | None:
            one = left(row)
            if one:
                return True
            other = right(row)
            return True if other else None if one is None or other is None else False

        return run

    def negation(self, node: exp.Expr, _term: Term) -> Compute:
        """`NOT a`."""
        return strict([self.part(node.this).compute], lambda value: not value)

    def distinct_from(self, node: exp.Expr, _term: Term) -> Compute:
        """`a IS DISTINCT FROM b`."""
        one, other = _widened(*self._two(node))
        return lambda row: not comparing.same(one(row), other(row))

    def is_(self, node: exp.Expr, _term: Term) -> Compute:
        """`a IS NULL`, `a IS TRUE`."""
        inner, right = self.part(node.this).compute, node.expression
        wanted = None if isinstance(right, exp.Null) else bool(right.this)
        return lambda row: inner(row) is wanted

    def between(self, node: exp.Expr, _term: Term) -> Compute:
        """`a BETWEEN b AND c`."""
        value, low, high = (
            self.part(part) for part in (node.this, node.args["low"], node.args["high"])
        )
        return _both(_compared(">=", value, low), _compared("<=", value, high))

    def member(self, node: exp.Expr, _term: Term) -> Compute:
        """`a IN (b, c)`."""
        parts = [self.part(part) for part in (node.this, *node.expressions)]
        wide = member_type(parts[0].term, [part.term for part in parts[1:]])
        value, *options = (converted(part, wide) for part in parts)

        def run(row: Row) -> bool | None:
            return comparing.member(value(row), [option(row) for option in options])

        return run

    def like(self, node: exp.Expr, _term: Term) -> Compute:
        """`a LIKE 'pattern'`."""
        escape = "\\"
        if isinstance(node, exp.Escape):
            escape, node = node.expression.name, node.this
        pattern = node.expression.name
        change: Callable[[str], str] = str
        if isinstance(node, exp.ILike):
            pattern, change = calls.lower(pattern), calls.lower
        matching = re.compile(_like(pattern, escape), re.DOTALL)
        return strict(
            [self.part(node.this).compute],
            lambda value: matching.fullmatch(change(value)) is not None,
        )

    def case(self, node: exp.Expr, term: Term) -> Compute:
        """`CASE WHEN …` and `CASE x WHEN …`."""
        subject = self.part(node.this) if node.this is not None else None
        branches = []
        for branch in node.args["ifs"]:
            when = self.part(branch.this)
            condition = when.compute if subject is None else equality(subject, when)
            branches.append((condition, converted(self.part(branch.args["true"]), term.type)))
        default = node.args.get("default")
        if default is None:
            return chosen(branches, lambda _row: None)
        return chosen(branches, converted(self.part(default), term.type))

    # --- calls ----------------------------------------------------------------------------------

    def pipe(self, node: exp.Expr, term: Term) -> Compute:
        """`a || b`."""
        return _call("concat", term, self._two(node))

    def extract(self, node: exp.Expr, term: Term) -> Compute:
        """`EXTRACT(YEAR FROM x)`."""
        return _call(node.this.name, term, [self.part(node.expression)])

    def function(self, node: exp.Expr, term: Term) -> Compute:
        """`name(argument, …)`."""
        return _call(node.name, term, [self.part(argument) for argument in node.expressions])


_HANDLERS: Mapping[type[exp.Expr], Callable[[_Reading, exp.Expr, Term], Compute]] = {
    exp.Column: _Reading.column,
    exp.Dot: _Reading.dot,
    exp.Bracket: _Reading.bracket,
    exp.Null: lambda _reading, _node, _term: lambda _row: None,
    exp.Neg: _Reading.negative,
    exp.Cast: _Reading.typed_literal,
    exp.TryCast: _Reading.cast,
    exp.And: _Reading.conjunction,
    exp.Or: _Reading.disjunction,
    exp.Not: _Reading.negation,
    exp.NullSafeNEQ: _Reading.distinct_from,
    exp.Is: _Reading.is_,
    exp.Between: _Reading.between,
    exp.In: _Reading.member,
    exp.Like: _Reading.like,
    exp.ILike: _Reading.like,
    exp.Escape: _Reading.like,
    exp.Case: _Reading.case,
    exp.IntDiv: _Reading.int_div,
    exp.DPipe: _Reading.pipe,
    exp.Extract: _Reading.extract,
    exp.Anonymous: _Reading.function,
}


def _call(name: str, term: Term, parts: Sequence[Part]) -> Compute:
    function = FUNCTIONS[name.lower()]
    if function.name in SPECIAL:
        return SPECIAL[function.name](term, parts)
    found = calls.CALLS.get(function.name)
    if found is None:
        raise FaultError(
            f"{function.name} is not computed here",
            hint="a filter or map box can do it; the reference of expressions lists what is.",
        )
    return strict(as_kinds(parts, found.kinds), found.compute)


def _field(compute: Compute, term: Term, name: str) -> Compute:
    fields = term.type.fields if isinstance(term.type, StructType) else ()
    exact = next(field.name for field in fields if field.name.lower() == name.lower())
    return strict([compute], lambda value: value[exact])


def _widened(left: Part, right: Part) -> tuple[Compute, Compute]:
    wide = common_type(left.term.type, right.term.type) or left.term.type
    return converted(left, wide), converted(right, wide)


def _compared(operator: str, left: Part, right: Part) -> Compute:
    return strict(_widened(left, right), comparing.OPERATORS[operator])


def _both(left: Compute, right: Compute) -> Compute:
    """`left AND right`: the right side counts only if the left one is not false."""

    def run(row: Row) -> bool | None:
        one = left(row)
        if one is False:
            return False
        other = right(row)
        return False if other is False else None if one is None or other is None else True

    return run


def _like(pattern: str, escape: str) -> str:
    """A checked pattern of LIKE as a regular expression."""
    found, literal = "", False
    for character in pattern:
        if literal or character not in (escape, "%", "_"):
            found, literal = found + re.escape(character), False
        elif character == escape:
            literal = True
        else:
            found += ".*" if character == "%" else "."
    return found
