"""Conditions and choices: AND, OR, comparisons, CASE, COALESCE, failing where Spark's do."""

from collections.abc import Sequence
from dataclasses import replace

from pipeline.network import sql_text
from pipeline.network.coercion import common_type, is_numeric, is_orderable
from pipeline.network.patterns import like_as_regex, longest_text
from pipeline.network.safe import any_of, castable, columns_of, convert, strict
from pipeline.network.term import FaultError, Term
from pipeline.network.types import DataType, Scalar

NULL = Term("NULL", Scalar.NULL, nullable=True)


def condition(term: Term, what: str) -> Term:
    """A term that must be a condition.

    Raises:
        FaultError: it is something else.
    """
    if term.type is Scalar.NULL:
        return convert(term, Scalar.BOOLEAN)
    if term.type is not Scalar.BOOLEAN:
        raise FaultError(
            f"{what} must be a condition, not {term.type}", hint="compare it with something"
        )
    return term


# --- AND, OR, NOT -------------------------------------------------------------------------------


def both(left: Term, right: Term) -> Term:
    """`left AND right`: the right side counts only if the left one is not false."""
    left, right = condition(left, "the left side of AND"), condition(right, "the right side of AND")
    return _connect("AND", left, right, f"coalesce({left.sql}, true)")


def either(left: Term, right: Term) -> Term:
    """`left OR right`: the right side counts only if the left one is not true."""
    left, right = condition(left, "the left side of OR"), condition(right, "the right side of OR")
    return _connect("OR", left, right, f"NOT coalesce({left.sql}, false)")


def _connect(word: str, left: Term, right: Term, reaches_right: str) -> Term:
    on_the_right = f"({reaches_right} AND {right.failed})" if right.failed else None
    made = strict(f"({left.sql} {word} {right.sql})", Scalar.BOOLEAN, [left, right])
    return replace(made, failed=any_of(left.failed, on_the_right))


def negation(term: Term) -> Term:
    """`NOT term`."""
    return strict(f"(NOT {condition(term, 'what NOT turns round').sql})", Scalar.BOOLEAN, [term])


def is_null(term: Term) -> Term:
    """`term IS NULL`."""
    return strict(f"({term.sql} IS NULL)", Scalar.BOOLEAN, [term], nullable=False)


def is_boolean(term: Term, *, value: bool) -> Term:
    """`term IS TRUE` or `term IS FALSE`."""
    term = condition(term, "the operand of IS TRUE")
    sql = f"({term.sql} <=> {'true' if value else 'false'})"
    return strict(sql, Scalar.BOOLEAN, [term], nullable=False)


# --- comparisons --------------------------------------------------------------------------------


def compare(operator: str, left: Term, right: Term) -> Term:
    """`left operator right`, operator one of `= <> < <= > >= <=>`.

    Raises:
        FaultError: the two have no common type, or it has no order.
    """
    if operator != "<=>" and Scalar.NULL in (left.type, right.type):
        raise FaultError(
            "a comparison with NULL is never true", hint="write IS NULL or IS NOT NULL"
        )
    left, right = _comparable(operator, left, right)
    nullable = False if operator == "<=>" else None
    sql = f"({left.sql} {operator} {right.sql})"
    return strict(sql, Scalar.BOOLEAN, [left, right], nullable=nullable)


def _comparable(operator: str, left: Term, right: Term) -> tuple[Term, Term]:
    wide = common_type(left.type, right.type)
    if wide is None:
        raise FaultError(
            f"{left.type} and {right.type} cannot be compared with {operator}",
            hint=_comparison_hint(left.type, right.type),
        )
    if not is_orderable(wide):
        raise FaultError(f"values of type {wide} cannot be compared", hint="compare their parts")
    return convert(left, wide), convert(right, wide)


def _comparison_hint(left: DataType, right: DataType) -> str:
    kinds = {left, right}
    if Scalar.TIMESTAMP in kinds and Scalar.STRING in kinds:
        return "write the time as TIMESTAMP '2024-01-31 12:00:00', or use to_timestamp(…)"
    if Scalar.DATE in kinds and Scalar.STRING in kinds:
        return "write the day as DATE '2024-01-31', or use to_date(…)"
    if Scalar.STRING in kinds and (is_numeric(left) or is_numeric(right)):
        return "quote both or neither, or CAST one side"
    if Scalar.TIMESTAMP in kinds and (is_numeric(left) or is_numeric(right)):
        return "unix_millis(…) makes a number of a time, timestamp_millis(…) a time of a number"
    return difference_hint(left, right, "CAST one side to the type of the other")


def difference_hint(left: DataType, right: DataType, cast: str) -> str:
    """The hint for two types that differ; `cast`, if one can be cast to the other."""
    if castable(left, right) or castable(right, left):
        return cast
    if is_orderable(left) and is_orderable(right):
        return "CAST both to STRING, or to another type that both can be cast to"
    return "a map box can select a part of it, such as m['key'] of a map"


def between(value: Term, low: Term, high: Term) -> Term:
    """`value BETWEEN low AND high`, both ends included."""
    return both(compare(">=", value, low), compare("<=", value, high))


def member(value: Term, options: Sequence[Term]) -> Term:
    """`value IN (option, …)`."""
    wide = member_type(value, options)
    value, options = convert(value, wide), [convert(option, wide) for option in options]
    listed = ", ".join(option.sql for option in options)
    return strict(f"({value.sql} IN ({listed}))", Scalar.BOOLEAN, [value, *options])


def member_type(value: Term, options: Sequence[Term]) -> DataType:
    """The type in which a value is compared with the options of IN.

    Raises:
        FaultError: there is none.
    """
    wide = value.type
    for option in options:
        wide = _comparable("IN", replace(value, type=wide), option)[0].type
    return wide


# --- choices ------------------------------------------------------------------------------------


def unify(terms: Sequence[Term], what: str = "") -> list[Term]:
    """All terms widened to one type; `what` mixes them, unless the caller reports it.

    Raises:
        FaultError: they have none in common.
    """
    wide = terms[0].type
    for term in terms[1:]:
        wider = common_type(wide, term.type)
        if wider is None:
            message = f"{what} mixes {wide} and {term.type}".strip()
            raise FaultError(message, hint="CAST them to one type")
        wide = wider
    return [convert(term, wide) for term in terms]


def all_millis(terms: Sequence[Term]) -> bool:
    """Whether a choice between the terms is a TIMESTAMP of whole milliseconds."""
    return all(t.millis or t.type is Scalar.NULL for t in terms) and any(t.millis for t in terms)


def case(branches: Sequence[tuple[Term, Term]], otherwise: Term | None) -> Term:
    """`CASE WHEN condition THEN value … ELSE otherwise END`; evaluates only the chosen branch."""
    last = otherwise or NULL
    conditions = [condition(when, "what follows WHEN") for when, _ in branches]
    given = [*(then for _, then in branches), last]
    values = unify(given, "CASE")
    tests = "".join(
        f" WHEN {when.sql} THEN {then.sql}" for when, then in zip(conditions, values, strict=False)
    )
    failing = [*conditions, *values]
    return Term(
        sql=f"(CASE{tests} ELSE {values[-1].sql} END)",
        type=values[0].type,
        nullable=any(value.nullable for value in values),
        failed=_case_failed(conditions, values) if any(t.failed for t in failing) else None,
        columns=columns_of([*conditions, *values]),
        millis=all_millis(given),
    )


def _case_failed(conditions: Sequence[Term], values: Sequence[Term]) -> str:
    """The failure condition of the same CASE: of its WHENs, and of the chosen branch."""
    steps = []
    for when, then in zip(conditions, values, strict=False):
        if when.failed:
            steps.append(f" WHEN {when.failed} THEN true")
        steps.append(f" WHEN {when.sql} THEN {then.failed or 'false'}")
    return f"(CASE{''.join(steps)} ELSE {values[-1].failed or 'false'} END)"


def coalesce(terms: Sequence[Term]) -> Term:
    """`coalesce(term, …)`: a later term is evaluated only if all before it are null."""
    values = unify(terms)
    failed: str | None = None
    for value in reversed(values):
        later = f"({value.sql} IS NULL AND {failed})" if failed else None
        failed = any_of(value.failed, later)
    return Term(
        sql=f"coalesce({', '.join(value.sql for value in values)})",
        type=values[0].type,
        nullable=all(value.nullable for value in values),
        failed=failed,
        columns=columns_of(values),
        millis=all_millis(terms),
    )


def null_if(value: Term, other: Term) -> Term:
    """`nullif(value, other)`: null if the two are equal, else the value."""
    equal = compare("=", value, other)
    sql = f"(CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END)"
    made = strict(sql, value.type, [value, other], own=equal.failed, nullable=True)
    return replace(made, millis=value.millis)


def like(value: Term, pattern: str, escape: str, *, ignore_case: bool) -> Term:
    """`value LIKE pattern`; the pattern is a literal."""
    if value.type not in (Scalar.STRING, Scalar.NULL):
        raise FaultError(f"LIKE matches text, not {value.type}")
    text = value.sql
    if ignore_case and pattern.isascii() and not escape.isalpha():  # what ILIKE means
        text, pattern, ignore_case = f"lower({text})", pattern.lower(), False
    regex = None if ignore_case else like_as_regex(pattern, escape)
    if regex is not None:
        sql = f"({text} RLIKE {sql_text.string(regex)})"
    else:
        word = "ILIKE" if ignore_case else "LIKE"
        sql = f"({text} {word} {sql_text.string(pattern)} ESCAPE {sql_text.string(escape)})"
    return strict(sql, Scalar.BOOLEAN, [value])


def rlike(value: Term, pattern: str) -> Term:
    """`value RLIKE pattern`; the pattern is a checked literal."""
    if value.type not in (Scalar.STRING, Scalar.NULL):
        raise FaultError(f"RLIKE matches text, not {value.type}")
    text, too_long = searched(value, pattern)
    sql = f"({text} RLIKE {sql_text.string(pattern)})"
    return strict(sql, Scalar.BOOLEAN, [value], own=too_long)


def searched(value: Term, pattern: str) -> tuple[str, str | None]:
    """The text that a checked regular expression is applied to, and when it is too long."""
    longest = longest_text(pattern)
    if longest is None:
        return value.sql, None
    too_long = f"(length({value.sql}) > {longest})"
    if value.nullable:
        too_long = f"coalesce({too_long}, false)"
    return f"substring({value.sql}, 1, {longest})", too_long
