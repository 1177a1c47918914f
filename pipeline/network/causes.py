"""Causes of a failed expression that follow with certainty from its text and values. Pure.

The query reports only that an expression failed as a whole. Three causes can be derived from the
text and the values: a zero divisor, a text that is not a number, and a sum without a value. The
first two are searched only where the expression computes every part, whatever the values are: not
inside CASE or a function, which may skip a part. All else, such as an overflow of a product,
depends on types, and is not guessed.
"""

from collections.abc import Iterator
from typing import Final

from sqlglot import exp

from pipeline.network.parsing import parse
from pipeline.network.term import FaultError
from schemas.json_value import Json, JsonObject

_DIVISIONS: Final = (exp.Div, exp.IntDiv, exp.Mod)
_STRICT: Final = frozenset(
    {
        *(exp.Paren, exp.Neg, exp.Not, exp.TryCast),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    }
)
"""Nodes that compute all of their parts first."""
_ADDING: Final = frozenset({"sum", "avg"})
_SIDES: Final = ("left", "right")
_NUMBERS: Final = frozenset({"INT", "BIGINT", "DECIMAL"})
"""Types of numbers that no text without a digit is cast to; a DOUBLE may be 'NaN'."""


def cause(text: str, values: JsonObject) -> str:
    """The certain cause of an expression's failure, in a few words; empty: not certain.

    Args:
        text: the expression, as the user wrote it.
        values: its inputs: columns, sides of a join, and calls of aggregate functions as they are
            written.
    """
    try:
        tree = parse(text)
        known = {_as_parsed(name): value for name, value in values.items()}
    except FaultError:
        return ""
    if _is_overflowed_sum(tree, known):
        return "overflow: the sum does not fit into its type"
    for node in _always_computed(tree):
        if isinstance(node, _DIVISIONS):
            over, by = _value(node.this, known), _value(node.expression, known)
            if over is not None and _is_zero(by):
                return f"division by zero: {_shown(node.expression)} is {by}"
        if isinstance(node, exp.TryCast):
            given, to = _value(node.this, known), node.to.sql("spark")
            if isinstance(given, str) and to.partition("(")[0] in _NUMBERS and _has_no_digit(given):
                return f"{_shown(node.this)} is {given!r}, which is no {to}"
    return ""


def _as_parsed(name: str) -> str:
    """A column's name, or a call as `sql` writes it, so that only case differs."""
    return (name if name.isidentifier() else parse(name).sql("spark")).lower()


def _shown(node: exp.Expr) -> str:
    """A part as the user wrote it."""
    return node.sql("spark", normalize_functions=False)


def _always_computed(node: exp.Expr) -> Iterator[exp.Expr]:
    """A part and the parts that it is computed from, the outermost first."""
    tries = isinstance(node, exp.TryCast) and node.args.get("safe")  # otherwise it is a CAST
    if type(node) in _STRICT and not tries:
        yield node
        for part in node.iter_expressions():
            yield from _always_computed(part)


def _is_overflowed_sum(tree: exp.Expr, known: JsonObject) -> bool:
    """Whether a sum is null although there were values: it overflowed."""
    written = tree.sql("spark").lower()
    call = tree.this if isinstance(tree, exp.Filter) else tree
    adds = isinstance(call, exp.Anonymous) and call.name.lower() in _ADDING
    return adds and written in known and known[written] is None


def _is_zero(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def _has_no_digit(text: str) -> bool:
    return not any(sign.isdigit() for sign in text)


def _value(node: exp.Expr, known: JsonObject) -> Json:
    """The value of a part; None if it is null, or not certain."""
    written = node.sql("spark").lower()
    if written in known:
        return known[written]
    if isinstance(node, exp.Paren):
        return _value(node.this, known)
    if isinstance(node, exp.Literal):
        return str(node.this) if node.is_string else _number(node.this)
    if isinstance(node, exp.Column | exp.Dot):
        return _column([part.name.lower() for part in node.parts], known)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return _whole(node, _value(node.this, known), _value(node.expression, known))
    return None


def _number(text: str) -> Json:
    return int(text) if text.isdigit() else None


def _column(path: list[str], known: JsonObject) -> Json:
    """A column or a field of one. In a join it may be of either side: both must be equal."""
    found = _field(path, known)
    if found is not None:
        return found
    sides = [_field([side, *path], known) for side in _SIDES]
    given = [value for value in sides if value is not None]
    return given[0] if given and all(value == given[0] for value in given) else None


def _field(path: list[str], known: JsonObject) -> Json:
    value: Json = known
    for name in path:
        if not isinstance(value, dict):
            return None
        value = next((one for key, one in value.items() if key.lower() == name), None)
    return value


def _whole(node: exp.Expr, left: Json, right: Json) -> Json:
    """Sums, differences and products of whole numbers, which are exact; None for others."""
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    if isinstance(node, exp.Add):
        return left + right
    return left - right if isinstance(node, exp.Sub) else left * right
