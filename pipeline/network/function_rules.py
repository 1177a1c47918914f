"""Rules of the function table: argument types, checks, and result types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.network import safe
from pipeline.network.coercion import INT_MAX, INT_MIN, is_integral, is_numeric
from pipeline.network.term import FaultError, Term
from pipeline.network.types import ArrayType, DataType, MapType, Scalar, StructType

Rule = Callable[[Sequence[Term]], Term]
"""From checked arguments to the call; raises `FaultError`."""

Kind = Callable[[Term], Term]
"""An argument's type check; returns the argument in that type, or raises `FaultError`."""


@dataclass(frozen=True, slots=True)
class Function:
    """One allowed function.

    Args:
        name: lower case; `also` are its other names.
        signature: for documentation: `substring(text, start [, length])`.
        result: for documentation: the result's type.
        meaning: one line.
        rule: checks and lowers a call.
        fails: for documentation: when a row fails; empty: never.
    """

    name: str
    signature: str
    result: str
    meaning: str
    rule: Rule
    fails: str = ""
    also: tuple[str, ...] = ()


# --- kinds of argument --------------------------------------------------------------------------


def _wrong(wanted: str, term: Term, hint: str = "") -> FaultError:
    return FaultError(f"needs {wanted}, not {term.type}", hint=hint)


def _fits(term: Term, *types: DataType) -> bool:
    return term.type in types or term.type is Scalar.NULL


def text(term: Term) -> Term:
    """A STRING."""
    if not _fits(term, Scalar.STRING):
        raise _wrong("text", term, "CAST(… AS STRING) makes text")
    return safe.convert(term, Scalar.STRING)


def as_text(term: Term) -> Term:
    """Any value without parts, converted to text."""
    if isinstance(term.type, ArrayType | MapType | StructType) or term.type is Scalar.INTERVAL:
        raise _wrong("text", term)
    return safe.cast(term, Scalar.STRING)


def number(term: Term) -> Term:
    """Any number, unchanged."""
    if term.type is Scalar.NULL:
        return safe.convert(term, Scalar.DOUBLE)
    if not is_numeric(term.type):
        raise _wrong("a number", term, "CAST(… AS DOUBLE) makes a number of a text")
    return term


def double(term: Term) -> Term:
    """Any number, as DOUBLE."""
    return safe.cast(number(term), Scalar.DOUBLE)


def whole(term: Term) -> Term:
    """INT or BIGINT, as BIGINT."""
    if not (is_integral(term.type) or term.type is Scalar.NULL):
        raise _wrong("a whole number", term, "CAST(… AS BIGINT) makes one")
    return safe.convert(term, Scalar.LONG)


def small(term: Term) -> Term:
    """INT; a BIGINT needs an explicit CAST."""
    if not _fits(term, Scalar.INT):
        raise _wrong("an INT", term, "CAST(… AS INT) makes one")
    return safe.convert(term, Scalar.INT)


def time(term: Term) -> Term:
    """TIMESTAMP, or a DATE as its midnight."""
    if not _fits(term, Scalar.TIMESTAMP, Scalar.DATE):
        hint = "timestamp_millis(…) makes a time of a number, to_timestamp(…) of a text"
        raise _wrong("a time", term, hint)
    return safe.convert(term, Scalar.TIMESTAMP)


def day(term: Term) -> Term:
    """DATE, or the day of a TIMESTAMP in UTC."""
    if not _fits(term, Scalar.TIMESTAMP, Scalar.DATE):
        raise _wrong("a date", term, "to_date(…) makes a date of a text")
    return safe.cast(term, Scalar.DATE)


def boolean(term: Term) -> Term:
    """A condition."""
    if not _fits(term, Scalar.BOOLEAN):
        raise _wrong("a condition", term)
    return safe.convert(term, Scalar.BOOLEAN)


def octets(term: Term) -> Term:
    """BINARY, or text as its UTF-8 bytes."""
    if not _fits(term, Scalar.BYTES, Scalar.STRING):
        raise _wrong("text or bytes", term, "CAST(… AS STRING) makes text")
    return safe.cast(term, Scalar.BYTES)


def simple(term: Term) -> Term:
    """Any value without parts."""
    if isinstance(term.type, ArrayType | MapType | StructType) or term.type is Scalar.INTERVAL:
        raise _wrong("a value without parts", term)
    return term


def anything(term: Term) -> Term:
    """Any value that can be a column."""
    if term.type is Scalar.INTERVAL:
        raise _wrong("a value", term)
    return term


def collection(term: Term) -> Term:
    """An array or a map."""
    if not isinstance(term.type, ArrayType | MapType):
        raise _wrong("an array or a map", term)
    return term


# --- literals -----------------------------------------------------------------------------------


def literal_text(term: Term, what: str) -> str:
    """The value of an argument that must be a text literal."""
    if not isinstance(term.constant, str):
        raise FaultError(f"needs {what} as a quoted text, so that it can be checked")
    return term.constant


def literal_int(term: Term, what: str, low: int = INT_MIN, high: int = INT_MAX) -> int:
    """The value of an argument that must be a whole-number literal within bounds."""
    value = term.constant
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise FaultError(f"needs {what} as a plain number from {low} to {high}")
    return value


# --- rules --------------------------------------------------------------------------------------


def checked(args: Sequence[Term], kinds: Sequence[Kind], *, optional: int = 0) -> list[Term]:
    """The arguments in the types of the kinds.

    Raises:
        FaultError: too few, too many, or one of the wrong type; names which.
    """
    least = len(kinds) - optional
    if not least <= len(args) <= len(kinds):
        wanted = str(least) if not optional else f"{least} to {len(kinds)}"
        raise FaultError(f"takes {wanted} argument{'s' if wanted != '1' else ''}, not {len(args)}")
    made = []
    for position, (arg, kind) in enumerate(zip(args, kinds, strict=False), start=1):
        try:
            made.append(kind(arg))
        except FaultError as error:
            where = f"argument {position} " if len(kinds) > 1 else ""
            fault = error.fault
            raise FaultError(
                where + fault.message, choices=fault.choices, hint=fault.hint
            ) from None
    return made


def plain(
    result: DataType,
    sql: str,
    *kinds: Kind,
    optional: int = 0,
    nullable: bool | None = None,
    fails: bool = False,
    millis: bool = False,
) -> Rule:
    """A rule for a function with a fixed result type.

    Args:
        result: the result's type.
        sql: the safe form, `{0}`, `{1}` for arguments, `{all}` for all of them.
        kinds: types of the arguments; the last `optional` of them may be omitted.
        optional: how many.
        nullable: as in `safe.strict`.
        fails: whether the safe form is null exactly where the function fails.
        millis: whether the result is a TIMESTAMP of whole milliseconds.
    """

    def rule(args: Sequence[Term]) -> Term:
        given = checked(args, kinds, optional=optional)
        texts = [a.sql for a in given]
        made = sql.format(*texts, all=", ".join(texts))
        own = safe.lost(made, given) if fails else None
        return replace(safe.strict(made, result, given, own=own, nullable=nullable), millis=millis)

    return rule


def renamed(function: Function) -> dict[str, Function]:
    """The function under each of its names."""
    return dict.fromkeys((function.name, *function.also), function)
