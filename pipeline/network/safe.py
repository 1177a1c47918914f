"""Spark SQL that never raises, and the condition under which the plain expression would have.

Under ANSI rules Spark raises on overflow, division by zero, an impossible cast, an index out of
range. That would stop a query for one bad record. So each operation is written in a form that
returns null instead, together with `failed`: a condition, never null, true exactly for the rows on
which the plain form raises. Three rules combine the conditions of parts:

* an ordinary function or operator evaluates all its arguments: it fails when one of them does, or
  when it itself does (the safe form is null although no argument is);
* AND, OR, IF, CASE, COALESCE evaluate a part only if the parts before it leave the result open, so
  the condition of that part counts only then;
* TRY_CAST and the other `try_` functions swallow their own failure, not that of their arguments.

Two traps of Spark are avoided: a safe form counts as failed by `IS NULL` only if Spark itself
considers it nullable (it considers `try_cast` of a date to a timestamp never null), and functions
whose `try_` form still raises (index 0 in `try_element_at`) are guarded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from pipeline.network import sql_text
from pipeline.network.coercion import (
    MAX_PRECISION,
    as_decimal,
    common_type,
    contains,
    decimal_of,
    decimal_result,
    is_floating,
    is_integral,
    is_numeric,
)
from pipeline.network.model import ColumnRef
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType, DecimalType, Scalar

_INT_DIGITS, _LONG_DIGITS = 10, 19
_DIGITS: Mapping[DataType, int] = {
    Scalar.INT: _INT_DIGITS,
    Scalar.LONG: _LONG_DIGITS,
    Scalar.BOOLEAN: 1,
}
"""Digits before the point that are sufficient for every value of a type."""

_ANY_NUMBER_TO = (Scalar.STRING, Scalar.BOOLEAN, Scalar.FLOAT, Scalar.DOUBLE)
"""Types to which any number can be cast."""

_NEVER_FAILING: Mapping[DataType, tuple[DataType, ...]] = {
    Scalar.STRING: (Scalar.BYTES,),
    Scalar.BYTES: (Scalar.STRING,),
    Scalar.DATE: (Scalar.STRING,),
    Scalar.BOOLEAN: (Scalar.STRING, Scalar.INT, Scalar.LONG, Scalar.FLOAT, Scalar.DOUBLE),
    Scalar.TIMESTAMP: (Scalar.STRING, Scalar.LONG, Scalar.DATE, Scalar.FLOAT, Scalar.DOUBLE),
    Scalar.INT: (*_ANY_NUMBER_TO, Scalar.LONG, Scalar.TIMESTAMP),
    Scalar.LONG: (*_ANY_NUMBER_TO, Scalar.TIMESTAMP),
    Scalar.FLOAT: _ANY_NUMBER_TO,
    Scalar.DOUBLE: _ANY_NUMBER_TO,
}
"""Casts between types without parameters that never fail."""

_NEGATED_EXACTLY = 34
"""Digits of a DECIMAL that Spark's minus preserves: it computes in IEEE 754's decimal128."""
_SAFE_DAYS = 100_000_000
"""Range of dates, in days from 1970, that are certainly timestamps: some 270,000 years each way."""

TRY_FORMS = {
    "+": "try_add",
    "-": "try_subtract",
    "*": "try_multiply",
    "/": "try_divide",
    "%": "try_mod",
}

# --- combining conditions -----------------------------------------------------------------------


def any_of(*conditions: str | None) -> str | None:
    """True when one of the conditions is; None means never. Repeats are written once."""
    present = tuple(dict.fromkeys(c for c in conditions if c is not None))
    if len(present) > 1:
        return f"({' OR '.join(present)})"
    return present[0] if present else None


def columns_of(terms: Iterable[Term]) -> frozenset[ColumnRef]:
    """Every column that one of the terms reads."""
    return frozenset(column for term in terms for column in term.columns)


def strict(
    sql: str,
    data_type: DataType,
    args: Sequence[Term],
    *,
    own: str | None = None,
    nullable: bool | None = None,
) -> Term:
    """A function that evaluates all its arguments.

    Args:
        sql: its safe form.
        data_type: its result type.
        args: its arguments.
        own: when the function itself fails.
        nullable: whether the result can be null; None: if an argument can.
    """
    return Term(
        sql=sql,
        type=data_type,
        nullable=any(a.nullable for a in args) if nullable is None else nullable,
        failed=any_of(*(a.failed for a in args), own),
        columns=columns_of(args),
    )


def lost(sql: str, args: Sequence[Term]) -> str:
    """The condition that a safe form is null although no argument is: it failed."""
    given = [f"{a.sql} IS NOT NULL" for a in args if a.nullable]
    return f"({' AND '.join([*given, f'{sql} IS NULL'])})"


def attempt(sql: str, data_type: DataType, args: Sequence[Term]) -> Term:
    """A function whose safe form is null exactly when it fails on non-null arguments."""
    return strict(sql, data_type, args, own=lost(sql, args))


# --- casts --------------------------------------------------------------------------------------


def convert(term: Term, to: DataType) -> Term:
    """Widen to a type returned by `common_type`."""
    if term.type == to:
        return term
    if term.type is Scalar.NULL and not castable(term.type, to):
        return replace(term, type=to)  # a type with parts: Spark adapts a NULL in place
    return replace(cast(term, to), millis=term.millis or term.type is Scalar.DATE)


def cast(term: Term, to: DataType) -> Term:
    """An explicit CAST under ANSI rules.

    Raises:
        FaultError: there is no such cast.
    """
    if term.type == to:
        return replace(term, constant=None, plain=None, form=None)
    if not castable(term.type, to):
        raise FaultError(f"a {term.type} cannot be cast to {to}")
    if term.type is Scalar.DATE and to is Scalar.TIMESTAMP:
        return _date_to_timestamp(term)
    if _cast_never_fails(term.type, to):
        return strict(sql_text.cast(term.sql, to), to, [term])
    return attempt(sql_text.try_cast(term.sql, to), to, [term])


def _date_to_timestamp(term: Term) -> Term:
    inside = f"unix_date({term.sql}) BETWEEN -{_SAFE_DAYS} AND {_SAFE_DAYS}"
    made = strict(
        f"CASE WHEN {inside} THEN CAST({term.sql} AS TIMESTAMP) END",
        Scalar.TIMESTAMP,
        [term],
        own=f"NOT coalesce({inside}, true)",
    )
    return replace(made, sql=f"({made.sql})", millis=True)


def try_cast(term: Term, to: DataType) -> Term:
    """TRY_CAST: null if a CAST would fail."""
    made = cast(term, to)
    if made.failed == term.failed:
        return made
    return replace(made, failed=term.failed, nullable=True)


def castable(source: DataType, to: DataType) -> bool:
    """Whether the cast exists."""
    if not (isinstance(to, Scalar | DecimalType) and isinstance(source, Scalar | DecimalType)):
        return False
    if to in (Scalar.INTERVAL, Scalar.NULL) or source is Scalar.INTERVAL:
        return False
    if source is Scalar.NULL or Scalar.STRING in (source, to):
        return True
    if is_numeric(to):
        return is_numeric(source) or source in (Scalar.BOOLEAN, Scalar.TIMESTAMP)
    if is_numeric(source):
        return to in (Scalar.BOOLEAN, Scalar.TIMESTAMP)
    return {source, to} == {Scalar.DATE, Scalar.TIMESTAMP}


def _cast_never_fails(source: DataType, to: DataType) -> bool:
    """Whether the cast succeeds for every value."""
    if source is Scalar.NULL:
        return True
    if isinstance(source, DecimalType):
        return to in _ANY_NUMBER_TO or _decimal_cast_never_fails(source, to)
    if isinstance(to, DecimalType):
        return to.precision - to.scale >= _DIGITS.get(source, MAX_PRECISION + 1)
    return to in _NEVER_FAILING.get(source, ())


def _decimal_cast_never_fails(source: DecimalType, to: DataType) -> bool:
    digits = source.precision - source.scale
    if isinstance(to, DecimalType):
        # Rounding away digits behind the point can carry into one more digit before it.
        return contains(to, source) or to.precision - to.scale > digits
    return (to is Scalar.INT and digits < _INT_DIGITS) or (
        to is Scalar.LONG and digits < _LONG_DIGITS
    )


# --- arithmetic ---------------------------------------------------------------------------------


def arithmetic(operator: str, left: Term, right: Term) -> Term:
    """`left operator right` for numbers; operator is one of `+ - * / %`.

    Raises:
        FaultError: one side is no number.
    """
    for side in (left, right):
        if not (is_numeric(side.type) or side.type is Scalar.NULL):
            raise FaultError(f"{operator} needs numbers, not {side.type}", hint=_hint(side.type))
    left, right, result = widened(operator, left, right)
    args = [left, right]
    if is_floating(result) and operator in "+-*":
        return strict(f"({left.sql} {operator} {right.sql})", result, args)
    return attempt(f"{TRY_FORMS[operator]}({left.sql}, {right.sql})", result, args)


def _hint(data_type: DataType) -> str:
    if data_type is Scalar.STRING:
        return "CAST(… AS DOUBLE) makes a number of a text"
    if data_type in (Scalar.TIMESTAMP, Scalar.DATE):
        return "unix_millis(…) makes a number of a time; + INTERVAL 1 MINUTE moves a time"
    return ""


def widened(operator: str, left: Term, right: Term) -> tuple[Term, Term, DataType]:
    """Both sides widened as in Spark, and the result's type."""
    kinds = (left.type, right.type)
    if not any(isinstance(kind, DecimalType) for kind in kinds):
        wide = common_type(left.type, right.type)
        if operator == "/" or wide is None or wide is Scalar.NULL:
            wide = Scalar.DOUBLE
        return convert(left, wide), convert(right, wide), wide
    if any(is_floating(kind) for kind in kinds):
        return convert(left, Scalar.DOUBLE), convert(right, Scalar.DOUBLE), Scalar.DOUBLE
    left, right = _exact(left, right), _exact(right, left)
    return left, right, decimal_result(operator, as_decimal(left.type), as_decimal(right.type))


def _exact(term: Term, other: Term) -> Term:
    """A side of decimal arithmetic as a decimal; a whole literal with exactly its own digits."""
    if isinstance(term.type, DecimalType):
        return term
    if term.type is Scalar.NULL:
        return convert(term, as_decimal(other.type))
    if isinstance(term.constant, int):
        return convert(term, decimal_of(Decimal(term.constant)))
    return convert(term, as_decimal(term.type))


def negate(term: Term) -> Term:
    """Unary minus."""
    if not is_numeric(term.type):
        raise FaultError(f"- needs a number, not {term.type}", hint=_hint(term.type))
    if is_integral(term.type):
        zero = "0" if term.type is Scalar.INT else "0L"
        return attempt(f"try_subtract({zero}, {term.sql})", term.type, [term])
    if is_rounded(term.type):
        return strict(_negated_by_text(term), term.type, [term])
    return strict(f"(- {term.sql})", term.type, [term])


def is_rounded(data_type: DataType) -> bool:
    """Whether Spark's own minus and abs round a value, or fail for want of a digit."""
    return isinstance(data_type, DecimalType) and data_type.precision > _NEGATED_EXACTLY


def _negated_by_text(term: Term) -> str:
    """The negated number, computed on its digits as text.

    Subtracting it from zero would require one more digit than the type has.
    """
    text = sql_text.cast(term.sql, Scalar.STRING)
    below = sql_text.cast(f"concat('-', {text})", term.type)
    above = sql_text.cast(f"substring({text}, 2)", term.type)
    return (
        f"(CASE WHEN {term.sql} > 0 THEN {below} WHEN {term.sql} < 0 THEN {above} "
        f"ELSE {term.sql} END)"
    )
