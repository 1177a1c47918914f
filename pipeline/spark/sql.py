"""Small pieces of Spark SQL text."""

from collections.abc import Iterable

from pipeline.network.model import Expression


def quoted(name: str) -> str:
    """A column name that is safe whatever it holds."""
    return f"`{name.replace('`', '``')}`"


def any_failed(expressions: Iterable[Expression]) -> str | None:
    """True where evaluating any of the expressions failed; None when none of them can."""
    parts = [f"({e.failed})" for e in expressions if e.failed is not None]
    return " OR ".join(parts) or None
