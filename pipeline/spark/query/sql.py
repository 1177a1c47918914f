"""Small pieces of Spark SQL text, and what can fail in them."""

from collections.abc import Iterable

from pipeline.network.model import Expression
from pipeline.planner.boxes.words import on_one_line
from pipeline.spark.query.lowered import Check, Step


def quoted(name: str) -> str:
    """A column name that is safe whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def let(name: str, value: str, body: str) -> str:
    """An expression in which `name` stands for a value, which is computed once."""
    return f"transform(array({value}), {name} -> {body})[0]"


def check(expression: Expression, failed: str) -> Check:
    """That an expression failed where `failed` is true."""
    return Check(failed, expression.origin, on_one_line(expression))


def checks(expressions: Iterable[Expression]) -> tuple[Check, ...]:
    """The expressions that can fail."""
    return tuple(check(e, e.failed) for e in expressions if e.failed is not None)


def any_failed(step: Step) -> str | None:
    """True where evaluating anything in a step failed; None when nothing can."""
    return " OR ".join(f"({check.failed})" for check in step.checks) or None
