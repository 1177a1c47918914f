"""Functions of text."""

from collections.abc import Sequence

from pipeline.network import safe, sql_text
from pipeline.network.coercion import INT_MAX, INT_MIN
from pipeline.network.function_rules import (
    Function,
    as_text,
    checked,
    literal_int,
    literal_text,
    plain,
    small,
    text,
)
from pipeline.network.logic import rlike, searched
from pipeline.network.patterns import check_regex
from pipeline.network.term import FaultError, Term
from pipeline.network.types import ArrayType, Scalar

_PAD_MAX = 1_000
"""The longest padding: a length from the data could require gigabytes."""
_TOO_LONG = "the pattern repeats a group, and the text is too long for that"


def _concat(args: Sequence[Term]) -> Term:
    if not args:
        raise FaultError("takes 1 argument or more, not 0")
    given = checked(args, [as_text] * len(args))
    return safe.strict(f"concat({', '.join(a.sql for a in given)})", Scalar.STRING, given)


def _concat_ws(args: Sequence[Term]) -> Term:
    if not args:
        raise FaultError("takes 1 argument or more, not 0")
    given = checked(args, [text, *[as_text] * (len(args) - 1)])
    sql = f"concat_ws({', '.join(a.sql for a in given)})"
    return safe.strict(sql, Scalar.STRING, given, nullable=given[0].nullable)


def _pad(name: str) -> "Function":
    def rule(args: Sequence[Term]) -> Term:
        given = checked(args, [text, small, text], optional=1)
        literal_int(args[1], "argument 2", 0, _PAD_MAX)
        return safe.strict(f"{name}({', '.join(a.sql for a in given)})", Scalar.STRING, given)

    side = "left" if name == "lpad" else "right"
    return Function(
        name,
        f"{name}(text, length [, fill])",
        "STRING",
        f"the text filled up on the {side}, or cut, to a literal length of at most {_PAD_MAX}",
        rule,
    )


def _split_part(args: Sequence[Term]) -> Term:
    value, separator, part = checked(args, [text, text, small])
    # The least INT has no absolute value, and Spark fails on it; no text has so many parts.
    index = f"CASE WHEN {part.sql} = {INT_MIN} THEN {-INT_MAX} ELSE nullif({part.sql}, 0) END"
    sql = f"split_part({value.sql}, {separator.sql}, {index})"
    given = [value, separator, part]
    if part.constant == 0:
        raise FaultError("argument 3 is 0, and parts are counted from 1")
    zero = None if part.constant else safe.lost(sql, given)
    return safe.strict(sql, Scalar.STRING, given, own=zero)


def _split(args: Sequence[Term]) -> Term:
    given = checked(args, [text, text])
    pattern = literal_text(args[1], "argument 2")
    check_regex(pattern)
    value, too_long = searched(given[0], pattern)
    sql = f"split({value}, {given[1].sql})"
    return safe.strict(sql, ArrayType(Scalar.STRING, element_nullable=False), given, own=too_long)


def _regexp_extract(args: Sequence[Term]) -> Term:
    given = checked(args, [text, text, small], optional=1)
    pattern = literal_text(args[1], "argument 2")
    groups = check_regex(pattern)
    index = literal_int(args[2], "argument 3", 0, groups) if len(args) > 2 else 1  # noqa: PLR2004
    if index > groups:
        raise FaultError(
            f"asks for group {index} of a pattern with {groups}", hint="0 is the whole match"
        )
    value, too_long = searched(given[0], pattern)
    sql = f"regexp_extract({value}, {sql_text.string(pattern)}, {index})"
    return safe.strict(sql, Scalar.STRING, given[:1], own=too_long)


def _regexp_replace(args: Sequence[Term]) -> Term:
    given = checked(args, [text, text, text])
    pattern = literal_text(args[1], "argument 2")
    check_regex(pattern)
    new = literal_text(args[2], "argument 3")
    if "$" in new or "\\" in new:
        raise FaultError("argument 3 may hold no $ and no backslash: groups are not put back")
    value, too_long = searched(given[0], pattern)
    sql = f"regexp_replace({value}, {sql_text.string(pattern)}, {sql_text.string(new)})"
    return safe.strict(sql, Scalar.STRING, given[:1], own=too_long)


def _regexp_like(args: Sequence[Term]) -> Term:
    given = checked(args, [text, text])
    pattern = literal_text(args[1], "argument 2")
    check_regex(pattern)
    return rlike(given[0], pattern)


def _slice(name: str) -> Function:
    def rule(args: Sequence[Term]) -> Term:
        given = checked(args, [text, small])
        return safe.strict(f"{name}({given[0].sql}, {given[1].sql})", Scalar.STRING, given)

    side = "first" if name == "left" else "last"
    return Function(name, f"{name}(text, n)", "STRING", f"the {side} n characters", rule)


def _one(name: str, meaning: str, *, also: tuple[str, ...] = ()) -> Function:
    rule = plain(Scalar.STRING, name + "({0})", text)
    return Function(name, f"{name}(text)", "STRING", meaning, rule, also=also)


def _test(name: str, meaning: str) -> Function:
    rule = plain(Scalar.BOOLEAN, name + "({0}, {1})", text, text)
    return Function(name, f"{name}(text, part)", "BOOLEAN", meaning, rule)


TABLE: tuple[Function, ...] = (
    _one("upper", "in capital letters", also=("ucase",)),
    _one("lower", "in small letters", also=("lcase",)),
    _one("trim", "without spaces at both ends"),
    _one("ltrim", "without spaces at the start"),
    _one("rtrim", "without spaces at the end"),
    _one("reverse", "the characters from last to first"),
    _one("initcap", "each word with a capital letter"),
    Function(
        "length",
        "length(text)",
        "INT",
        "the number of characters",
        plain(Scalar.INT, "length({0})", text),
        also=("char_length", "character_length", "len"),
    ),
    Function(
        "substring",
        "substring(text, start [, length])",
        "STRING",
        "the part from character `start` on, counted from 1, or from the end when negative",
        plain(Scalar.STRING, "substring({all})", text, small, small, optional=1),
        also=("substr",),
    ),
    _slice("left"),
    _slice("right"),
    Function(
        "concat",
        "concat(value, …)",
        "STRING",
        "all values as text, one after the other; also written `a || b`",
        _concat,
    ),
    Function(
        "concat_ws",
        "concat_ws(separator, value, …)",
        "STRING",
        "all values that are not null as text, with the separator between them",
        _concat_ws,
    ),
    Function(
        "replace",
        "replace(text, old [, new])",
        "STRING",
        "every `old` replaced",
        plain(Scalar.STRING, "replace({all})", text, text, text, optional=1),
    ),
    Function(
        "translate",
        "translate(text, from, to)",
        "STRING",
        "each character of `from` replaced by the one of `to` in its place",
        plain(Scalar.STRING, "translate({all})", text, text, text),
    ),
    Function(
        "split",
        "split(text, 'pattern')",
        "ARRAY<STRING>",
        "the parts of the text between what matches the regular expression",
        _split,
        fails=_TOO_LONG,
    ),
    Function(
        "split_part",
        "split_part(text, separator, n)",
        "STRING",
        "part n, counted from 1, or from the end when negative; empty when there is none",
        _split_part,
        fails="n is 0",
    ),
    Function(
        "instr",
        "instr(text, part)",
        "INT",
        "where `part` first begins, counted from 1; 0 when nowhere",
        plain(Scalar.INT, "instr({0}, {1})", text, text),
    ),
    Function(
        "locate",
        "locate(part, text [, start])",
        "INT",
        "where `part` first begins at or after `start`; 0 when nowhere",
        plain(Scalar.INT, "locate({all})", text, text, small, optional=1),
    ),
    _test("startswith", "whether it begins with the part"),
    _test("endswith", "whether it ends with the part"),
    _test("contains", "whether the part is in it"),
    _pad("lpad"),
    _pad("rpad"),
    Function(
        "regexp_like",
        "regexp_like(text, pattern)",
        "BOOLEAN",
        "whether a literal regular expression is found; also `text RLIKE pattern`",
        _regexp_like,
        fails=_TOO_LONG,
        also=("rlike", "regexp"),
    ),
    Function(
        "regexp_extract",
        "regexp_extract(text, pattern [, group])",
        "STRING",
        "a group (1 unless said) of the first match of a literal pattern; empty without a match",
        _regexp_extract,
        fails=_TOO_LONG,
    ),
    Function(
        "regexp_replace",
        "regexp_replace(text, pattern, new)",
        "STRING",
        "every match of a literal pattern replaced by a literal text",
        _regexp_replace,
        fails=_TOO_LONG,
    ),
)
"""Every function of text."""
