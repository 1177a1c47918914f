"""Type checker of expressions: text and the columns in scope in, typed and safe Spark SQL out.

The walk reports every mistake it finds, not only the first: an invalid part yields None, and
nothing more is reported of what contains it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from pipeline.network import literals, logic, parsing, safe
from pipeline.network.aggregate_functions import AGGREGATES
from pipeline.network.functions import call, item, no_function
from pipeline.network.functions_time import PARTS
from pipeline.network.model import NOWHERE, Expression, Origin
from pipeline.network.patterns import check_like, check_regex
from pipeline.network.scope import Scope, struct_field
from pipeline.network.term import Fault, FaultError, Term
from pipeline.network.types import DataType, Scalar
from pipeline.network.unsupported import unsupported

Aggregate = Callable[[str, exp.Expr, exp.Expr | None], Term | None]
"""Handles an aggregate call (name, call, condition of FILTER); None: already reported."""

ARITHMETIC: Mapping[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a text: the expression, or its faults."""

    expression: Expression | None
    faults: tuple[Fault, ...]


def check(
    text: str,
    scope: Scope,
    *,
    wants: DataType | None = None,
    origin: Origin = NOWHERE,
    named: bool = False,
) -> Checked:
    """Check one expression.

    Args:
        text: as the user wrote it.
        scope: the names in scope.
        wants: the required type; None: any that a column can have.
        origin: its place in the document.
        named: as for `parsing.parse`.
    """
    return check_with(text, Walk(scope), wants=wants, origin=origin, named=named)


def check_with(
    text: str,
    walk: "Walk",
    *,
    wants: DataType | None = None,
    origin: Origin = NOWHERE,
    named: bool = False,
) -> Checked:
    """Check one expression with a walk that may take aggregate functions."""
    try:
        tree = parsing.parse(text, named=named)
    except FaultError as error:
        return Checked(None, (error.fault,))
    term = walk.term(tree)
    if term is not None and not walk.faults:
        fault = _unfit(term, wants)
        if fault is None:
            return Checked(finished(text, term, origin), ())
        walk.faults.append(fault)
    return Checked(None, tuple(dict.fromkeys(walk.faults)))


def syntax(text: str, *, named: bool = False) -> tuple[Fault, ...]:
    """Syntax faults of an expression, independent of its names."""
    try:
        parsing.parse(text, named=named)
    except FaultError as error:
        return (error.fault,)
    return ()


def finished(text: str, term: Term, origin: Origin) -> Expression:
    """A checked term as the expression for other modules."""
    return Expression(
        text=text,
        sql=term.sql,
        failed=term.failed,
        type=term.type,
        nullable=term.nullable,
        columns=term.columns,
        plain=term.plain,
        millis=term.millis,
        origin=origin,
        form=term.form,
    )


def _unfit(term: Term, wants: DataType | None) -> Fault | None:
    if wants is not None and term.type != wants:
        what = "a condition" if wants is Scalar.BOOLEAN else f"a {wants}"
        hint = "timestamp_millis(…) makes a time of a number" if wants is Scalar.TIMESTAMP else ""
        return Fault(f"needs {what}, but this is {term.type}", hint=hint)
    if term.type is Scalar.INTERVAL:
        return Fault(
            "a length of time cannot be a column",
            hint="subtract unix_millis(…) of both times instead",
        )
    if term.type is Scalar.NULL:
        return Fault("NULL alone has no type", hint="write CAST(NULL AS STRING) or another type")
    return None


class Walk:
    """One walk over one syntax tree; collects faults."""

    def __init__(self, scope: Scope, aggregate: Aggregate | None = None) -> None:
        self.scope = scope
        self.aggregate = aggregate
        self.faults: list[Fault] = []

    def term(self, node: exp.Expr | None) -> Term | None:
        """The checked term of a node; None if it, or a part of it, was reported."""
        if node is None:
            return None
        try:
            return self._term(node)
        except FaultError as error:
            self.faults.append(error.fault)
            return None

    def _terms(self, nodes: Sequence[exp.Expr]) -> list[Term] | None:
        made = [self.term(node) for node in nodes]
        return None if None in made else [term for term in made if term is not None]

    def _term(self, node: exp.Expr) -> Term | None:
        if isinstance(node, exp.Paren):
            return self.term(node.this)
        kind = type(node)
        if kind in ARITHMETIC:
            return self._two(node, lambda a, b: _arithmetic(ARITHMETIC[kind], a, b))
        if kind in COMPARISONS:
            return self._two(node, lambda a, b: logic.compare(COMPARISONS[kind], a, b))
        handler = _HANDLERS.get(kind)
        if handler is None:
            raise unsupported(node)
        return handler(self, node)

    def _two(self, node: exp.Expr, make: Callable[[Term, Term], Term]) -> Term | None:
        terms = self._terms([node.this, node.expression])
        return None if terms is None else make(terms[0], terms[1])

    def _one(self, node: exp.Expr, make: Callable[[Term], Term]) -> Term | None:
        term = self.term(node.this)
        return None if term is None else make(term)

    # --- names and literals ---------------------------------------------------------------------

    def column(self, node: exp.Expr) -> Term | None:
        """`a`, `a.b`, `left.a`."""
        if isinstance(node.this, exp.Star):
            raise unsupported(node.this)
        return self.scope.resolve([part.name for part in column_parts(node)])

    def dot(self, node: exp.Expr) -> Term | None:
        """`(…).field`."""
        return self._one(node, lambda term: struct_field(term, node.expression.name))

    def bracket(self, node: exp.Expr) -> Term | None:
        """`array[n]`, `map[key]`."""
        if len(node.expressions) != 1:
            raise FaultError("brackets take one index or key")
        terms = self._terms([node.this, node.expressions[0]])
        return None if terms is None else item(terms[0], terms[1])

    def literal(self, node: exp.Expr) -> Term | None:
        """A text or a number."""
        if node.args.get("is_string"):
            return literals.text(node.name)
        return literals.number(node.name, negative=False)

    def negative(self, node: exp.Expr) -> Term | None:
        """Unary minus; in front of a literal it is part of it."""
        inner = node.this
        if isinstance(inner, exp.Literal) and not inner.args.get("is_string"):
            return literals.number(inner.name, negative=True)
        if isinstance(inner, exp.TryCast) and _is_suffixed(inner):
            return _suffixed(inner, negative=True)
        return self._one(node, safe.negate)

    def interval(self, node: exp.Expr) -> Term | None:
        """`INTERVAL 5 MINUTES`."""
        unit, amount = node.args.get("unit"), node.this
        sign = ""
        while isinstance(amount, exp.Neg | exp.Paren):
            sign = ("" if sign else "-") if isinstance(amount, exp.Neg) else sign
            amount = amount.this
        if not isinstance(unit, exp.Var) or not isinstance(amount, exp.Literal):
            raise FaultError(
                "INTERVAL needs a literal number and one unit", hint="write INTERVAL 5 MINUTES"
            )
        return literals.interval(sign + amount.name.strip(), unit.name)

    # --- casts ----------------------------------------------------------------------------------

    def typed_literal(self, node: exp.Expr) -> Term | None:
        """`TIMESTAMP '…'` and `DATE '…'`."""
        to = literals.named_type(node.args.get("to"))
        if isinstance(node.this, exp.Literal) and to in (Scalar.TIMESTAMP, Scalar.DATE):
            value = node.this.name
            return literals.timestamp(value) if to is Scalar.TIMESTAMP else literals.day(value)
        return self._one(node, lambda term: safe.cast(term, to))

    def cast(self, node: exp.Expr) -> Term | None:
        """`CAST(x AS t)`, `x::t`, `TRY_CAST(x AS t)`, and numbers with a suffix."""
        if node.args.get("format") or node.args.get("default"):
            raise FaultError("CAST takes no FORMAT and no DEFAULT")
        if _is_suffixed(node):
            return _suffixed(node, negative=False)
        try:
            to = literals.named_type(node.args.get("to"))
        except FaultError as error:
            self.faults.append(error.fault)
            self.term(node.this)
            return None
        make = safe.try_cast if node.args.get("safe") else safe.cast
        return self._one(node, lambda term: make(term, to))

    # --- conditions -----------------------------------------------------------------------------

    def conjunction(self, node: exp.Expr) -> Term | None:
        """`a AND b`."""
        return self._two(node, logic.both)

    def disjunction(self, node: exp.Expr) -> Term | None:
        """`a OR b`."""
        return self._two(node, logic.either)

    def negation(self, node: exp.Expr) -> Term | None:
        """`NOT a`."""
        return self._one(node, logic.negation)

    def distinct_from(self, node: exp.Expr) -> Term | None:
        """`a IS DISTINCT FROM b`."""
        return self._two(node, lambda a, b: logic.negation(logic.compare("<=>", a, b)))

    def is_(self, node: exp.Expr) -> Term | None:
        """`a IS NULL`, `a IS TRUE`."""
        right = node.expression
        if isinstance(right, exp.Null):
            return self._one(node, logic.is_null)
        if isinstance(right, exp.Boolean):
            return self._one(node, lambda t: logic.is_boolean(t, value=bool(right.this)))
        raise FaultError("IS takes NULL, TRUE or FALSE", hint="compare values with =")

    def between(self, node: exp.Expr) -> Term | None:
        """`a BETWEEN b AND c`."""
        if node.args.get("symmetric"):
            raise FaultError("BETWEEN SYMMETRIC is not supported")
        terms = self._terms([node.this, node.args["low"], node.args["high"]])
        return None if terms is None else logic.between(*terms)

    def member(self, node: exp.Expr) -> Term | None:
        """`a IN (b, c)`."""
        if node.args.get("query") is not None:
            raise FaultError("a SELECT inside an expression is refused", hint="use a join box")
        if not node.expressions:
            raise FaultError("IN needs a list of values in parentheses")
        terms = self._terms([node.this, *node.expressions])
        return None if terms is None else logic.member(terms[0], terms[1:])

    def like(self, node: exp.Expr) -> Term | None:
        """`a LIKE 'pattern'`, with or without ESCAPE."""
        escape = "\\"
        if isinstance(node, exp.Escape):
            escape = _literal_text(node.expression, "ESCAPE")
            node = node.this
        if not isinstance(node, exp.Like | exp.ILike):
            raise unsupported(node)
        pattern = _literal_text(node.expression, "LIKE")
        check_like(pattern, escape)
        ignore = isinstance(node, exp.ILike)
        return self._one(node, lambda t: logic.like(t, pattern, escape, ignore_case=ignore))

    def rlike(self, node: exp.Expr) -> Term | None:
        """`a RLIKE 'pattern'`."""
        pattern = _literal_text(node.expression, "RLIKE")
        check_regex(pattern)
        return self._one(node, lambda term: logic.rlike(term, pattern))

    def case(self, node: exp.Expr) -> Term | None:
        """`CASE WHEN …` and `CASE x WHEN …`."""
        subject, ifs, default = node.this, node.args["ifs"], node.args.get("default")
        whens = self._terms([branch.this for branch in ifs])
        thens = self._terms([branch.args["true"] for branch in ifs])
        otherwise = self.term(default)
        value = self.term(subject)
        if whens is None or thens is None or (default is not None and otherwise is None):
            return None
        if subject is not None:
            if value is None:
                return None
            whens = [logic.compare("=", value, when) for when in whens]
        return logic.case(list(zip(whens, thens, strict=True)), otherwise)

    # --- calls ----------------------------------------------------------------------------------

    def int_div(self, node: exp.Expr) -> Term | None:
        """`a DIV b`."""
        return self._two(node, _int_div)

    def pipe(self, node: exp.Expr) -> Term | None:
        """`a || b`."""
        return self._two(node, lambda a, b: call("concat", [a, b]))

    def extract(self, node: exp.Expr) -> Term | None:
        """`EXTRACT(YEAR FROM x)`."""
        name = {"day": "dayofmonth", "week": "weekofyear"}.get(
            node.this.name.lower(), node.this.name.lower()
        )
        if name not in PARTS:
            raise FaultError(f"EXTRACT has no {name}", choices=tuple(PARTS))
        term = self.term(node.expression)
        return None if term is None else call(name, [term])

    def function(self, node: exp.Expr) -> Term | None:
        """`name(argument, …)`."""
        if self.aggregate is not None and node.name.lower() in AGGREGATES:
            return self.aggregate(node.name.lower(), node, None)
        missing = no_function(node.name)
        if missing is not None:
            self.faults.append(missing)
            if self.aggregate is None:  # otherwise its readable columns are undefined
                self._terms(_values(node.expressions))
            return None
        terms = self._terms(node.expressions)
        return None if terms is None else call(node.name, terms)

    def filtered(self, node: exp.Expr) -> Term | None:
        """`aggregate(…) FILTER (WHERE condition)`."""
        if not isinstance(node.this, exp.Anonymous) or node.this.name.lower() not in AGGREGATES:
            raise unsupported(node)
        if self.aggregate is None:
            return self.function(node.this)
        return self.aggregate(node.this.name.lower(), node.this, node.expression.this)


_HANDLERS: Mapping[type[exp.Expr], Callable[[Walk, exp.Expr], Term | None]] = {
    exp.Column: Walk.column,
    exp.Dot: Walk.dot,
    exp.Bracket: Walk.bracket,
    exp.Literal: Walk.literal,
    exp.RawString: lambda _, node: literals.text(node.name),
    exp.Boolean: lambda _, node: literals.boolean(value=bool(node.this)),
    exp.Null: lambda _walk, _node: logic.NULL,
    exp.Neg: Walk.negative,
    exp.Interval: Walk.interval,
    exp.Cast: Walk.typed_literal,
    exp.TryCast: Walk.cast,
    exp.And: Walk.conjunction,
    exp.Or: Walk.disjunction,
    exp.Not: Walk.negation,
    exp.NullSafeNEQ: Walk.distinct_from,
    exp.Is: Walk.is_,
    exp.Between: Walk.between,
    exp.In: Walk.member,
    exp.Like: Walk.like,
    exp.ILike: Walk.like,
    exp.Escape: Walk.like,
    exp.RegexpLike: Walk.rlike,
    exp.Case: Walk.case,
    exp.IntDiv: Walk.int_div,
    exp.DPipe: Walk.pipe,
    exp.Extract: Walk.extract,
    exp.Anonymous: Walk.function,
    exp.Filter: Walk.filtered,
}


def _values(args: Sequence[exp.Expr]) -> list[exp.Expr]:
    """The arguments of a misplaced aggregate call, without the parts only such a call can have."""
    found: list[exp.Expr] = []
    for arg in args:
        if isinstance(arg, exp.Distinct):
            found += _values(arg.expressions)
        elif not isinstance(arg, exp.Star):
            found.append(arg.this if isinstance(arg, exp.Order) else arg)
    return found


def column_parts(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a dotted name."""
    named = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    return [part for part in named if isinstance(part, exp.Expr)]


def _arithmetic(operator: str, left: Term, right: Term) -> Term:
    return literals.combine(operator, left, right) or safe.arithmetic(operator, left, right)


def _int_div(left: Term, right: Term) -> Term:
    """`a DIV b` for whole numbers; the one overflow is the least BIGINT by -1."""
    for side in (left, right):
        if side.type not in (Scalar.INT, Scalar.LONG, Scalar.NULL):
            raise FaultError(f"DIV needs whole numbers, not {side.type}", hint="use / and floor(…)")
    left, right = safe.convert(left, Scalar.LONG), safe.convert(right, Scalar.LONG)
    overflow = f"({left.sql} = -9223372036854775808L AND {right.sql} = -1L)"
    sql = (
        f"(CASE WHEN {right.sql} = 0L OR {overflow} THEN NULL"
        f" ELSE {left.sql} DIV nullif({right.sql}, 0L) END)"
    )
    return safe.attempt(sql, Scalar.LONG, [left, right])


def _is_suffixed(node: exp.Expr) -> bool:
    """Whether sqlglot made this cast from a number with a suffix, such as `1L` or `1.5BD`.

    `CAST(1 AS BIGINT)` gives the same tree, and means the same. A cast of a quoted text does so
    only for DECIMAL, where it also means the same as long as the text has just these digits.
    """
    inner, to = node.this, node.args.get("to")
    if not isinstance(inner, exp.Literal) or not isinstance(to, exp.DataType):
        return False
    if node.args.get("safe"):
        return False
    return not inner.args.get("is_string") and to.this in SUFFIX_TYPES


SUFFIX_TYPES = (*literals.SUFFIXES, exp.DType.SMALLINT, exp.DType.TINYINT)


def _suffixed(node: exp.Expr, *, negative: bool) -> Term:
    to = node.args["to"].this
    if to not in literals.SUFFIXES:
        raise FaultError("SMALLINT and TINYINT do not exist here", hint="use INT")
    text = node.this.name
    if literals.SUFFIXES[to] is Scalar.LONG and not text.isdigit():
        return safe.cast(literals.number(text, negative=negative), Scalar.LONG)
    return literals.suffixed(text, literals.SUFFIXES[to], negative=negative)


def _literal_text(node: exp.Expr, what: str) -> str:
    if isinstance(node, exp.RawString) or (
        isinstance(node, exp.Literal) and node.args.get("is_string")
    ):
        return node.name
    raise FaultError(f"{what} needs a quoted text, so that it can be checked")
