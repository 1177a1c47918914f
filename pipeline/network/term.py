"""Checked sub-expressions, and faults found by checking."""

from dataclasses import dataclass, field
from decimal import Decimal

from pipeline.network.model import ColumnRef
from pipeline.network.types import DataType, Form

Constant = bool | int | float | Decimal | str


@dataclass(frozen=True, slots=True)
class Term:
    """One checked sub-expression, as Spark SQL that never raises.

    Args:
        sql: as in `Expression.sql`; safe to put inside any other SQL without more parentheses.
        failed: as in `Expression.failed`, for this sub-expression and all inside it.
        constant: the value, if it is a literal.
        plain: the column, if it is just that.
        millis: whether it is a TIMESTAMP of whole milliseconds.
        form: the written form of the column, if it is just that.
    """

    sql: str
    type: DataType
    nullable: bool = False
    failed: str | None = None
    columns: frozenset[ColumnRef] = field(default=frozenset())
    constant: Constant | None = None
    plain: ColumnRef | None = None
    millis: bool = False
    form: Form | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake in an expression; the caller adds file, line and box.

    `choices`: existing alternatives, best guess first.
    """

    message: str
    choices: tuple[str, ...] = ()
    hint: str = ""


class FaultError(Exception):
    """Carries one `Fault` from a typing rule to the walk over the expression; never escapes it."""

    def __init__(self, message: str, *, choices: tuple[str, ...] = (), hint: str = "") -> None:
        super().__init__(message)
        self.fault = Fault(message, choices, hint)
