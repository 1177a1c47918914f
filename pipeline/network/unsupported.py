"""Messages for syntax of Spark SQL that is not supported here, with the alternative.

Syntax around a call (`WITHIN GROUP`, `IGNORE NULLS`, `OVER`) is reported as the call, if its
function is one of the rejected ones.
"""

from sqlglot import exp

from pipeline.network.functions import REFUSED, no_function
from pipeline.network.term import Fault, FaultError

_SHOWN = 60

_AROUND = (exp.Window, exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
"""Syntax that can follow a call."""

_REFUSED_SYNTAX: tuple[tuple[tuple[type[exp.Expr], ...], str, str], ...] = (
    (
        (exp.Window,),
        "OVER is refused: it depends on the order of records",
        "use an aggregate box; a top box ranks the rows of a window",
    ),
    (
        (exp.WithinGroup,),
        "WITHIN GROUP is not supported",
        "percentile(x, 0.5) and median(x) put values in order themselves",
    ),
    (
        (exp.IgnoreNulls,),
        "IGNORE NULLS is not written here: every aggregate function passes over nulls",
        "leave it out",
    ),
    (
        (exp.RespectNulls,),
        "RESPECT NULLS is not supported: every aggregate function passes over nulls",
        "make a value of null: first(coalesce(x, 0))",
    ),
    (
        (exp.Order, exp.HavingMax),
        "ORDER BY inside a function is not supported",
        "first(x) and last(x) go by event time, min_by(x, y) and max_by(x, y) by y",
    ),
    (
        (exp.Subquery, exp.Select, exp.SetOperation),
        "a SELECT inside an expression is refused",
        "use a join box",
    ),
    ((exp.Star,), "* is refused: name the columns", "leave select out to keep all of them"),
    (
        (exp.Lambda, exp.JSONExtract),
        "a function of its own (x -> …) is not supported",
        "a flat_map box makes a row of each element of an array",
    ),
    ((exp.Distinct,), "DISTINCT is allowed only in count(DISTINCT x)", ""),
    ((exp.Filter,), "FILTER is allowed only behind an aggregate function", ""),
    ((exp.Parameter, exp.Placeholder), "parameters are not replaced here", "write the value"),
    (
        (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
        "operators on bits are not supported",
        "",
    ),
)


def unsupported(node: exp.Expr) -> FaultError:
    """Why an unsupported node is rejected, and the alternative."""
    fault = _refused_call(node)
    if fault is not None:
        return FaultError(fault.message, hint=fault.hint)
    if isinstance(node, exp.Filter) and isinstance(node.this, _AROUND):
        node = node.this
    for kinds, message, hint in _REFUSED_SYNTAX:
        if isinstance(node, kinds):
            return FaultError(message, hint=hint)
    if isinstance(node, exp.Concat):
        return FaultError(
            "two texts side by side", hint=r"write || between them, or \' for a quote in a text"
        )
    shown = node.sql("spark")
    return FaultError(f"{shown[:_SHOWN]!r} is not supported here")


def _refused_call(node: exp.Expr) -> Fault | None:
    """The fault of the inner call, if its function is rejected in any context."""
    while isinstance(node, _AROUND):
        node = node.this
    refused = isinstance(node, exp.Anonymous) and node.name.lower() in REFUSED
    return no_function(node.name) if refused else None
