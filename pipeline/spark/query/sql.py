"""Helpers for Spark SQL text and its failure checks."""

from collections.abc import Iterable

from pipeline.network.model import Expression
from pipeline.planner.boxes.words import on_one_line
from pipeline.spark.query.lowered import Check, Step


def quoted(name: str) -> str:
    """A quoted column name."""
    return f"`{name.replace('`', '``')}`"


def let(name: str, value: str, body: str) -> str:
    """An expression in which `name` is bound to a value, which is computed once."""
    return f"transform(array({value}), {name} -> {body})[0]"


def check(expression: Expression, failed: str) -> Check:
    """The check that an expression failed where `failed` is true."""
    return Check(failed, expression.origin, on_one_line(expression))


def checks(expressions: Iterable[Expression]) -> tuple[Check, ...]:
    """The checks of the expressions that can fail."""
    return tuple(check(e, e.failed) for e in expressions if e.failed is not None)


def any_failed(step: Step) -> str | None:
    """SQL condition of a failure in a step; None if it cannot fail."""
    return " OR ".join(f"({check.failed})" for check in step.checks) or None
