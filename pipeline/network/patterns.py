r"""Patterns inside expressions: LIKE, regular expressions, date and time formats.

Spark parses them only when the query runs, and a malformed one stops it. So they must be literals
and are checked here: a little stricter than Java does, never laxer.
"""

import re
import warnings

from pipeline.network.term import FaultError

_REGEX_MAX = 1_000
_DEEPEST = 3_000
"""Limit of Java's recursion into groups; twice as much can overflow its stack."""
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_FORMAT_MAX = 100
_WILDCARDS_OF_SPARK = 2
"""The number of `%` up to which LIKE is left to Spark."""

_PYTHON_ONLY = re.compile(r"\(\?P|\(\?#|\(\?\(|\(\?[A-Za-z]*[aLx]|\\[UNZ]")
r"""Syntax of Python that Java rejects or reads differently: `(?P<n>`, `(?#…)`, `(?(1)…)`, `\Z`."""

_BRACE = re.compile(r"\{(?!\d+(,\d*)?\})")
"""A brace that begins no count; Java rejects it unless it is escaped."""

_FORMAT_PART = (
    r"yyyy|yy|MMMM|MMM|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|S{1,9}|a|XXX|XX|X|'[^']*'|[-/:.,_ \[\]]"
)
_PARSE_FORMAT = re.compile(f"(?:{_FORMAT_PART})+")
_PRINT_FORMAT = re.compile(f"(?:{_FORMAT_PART}|EEEE|EEE|DDD)+")


def check_regex(pattern: str) -> int:
    """Check a regular expression; returns the number of its groups.

    Raises:
        FaultError: it does not parse, or uses what Java and Python read differently.
    """
    if len(pattern) > _REGEX_MAX:
        raise FaultError(f"a regular expression of more than {_REGEX_MAX} characters")
    plain = _without_escapes(pattern)
    odd = _PYTHON_ONLY.search(plain) or _BRACE.search(plain)
    if odd:
        raise FaultError(
            f"the regular expression uses {odd[0]!r}, which is not supported",
            hint="escape a literal brace with a backslash" if odd[0] == "{" else "",
        )
    if re.search(r"\[[^\]]*(\[|&&)", plain):
        raise FaultError(
            "the regular expression has '[' or '&&' inside a character class",
            hint="escape it with a backslash",
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern).groups
    except (re.error, Warning, OverflowError, RecursionError) as error:
        raise FaultError(f"the regular expression does not parse: {error}") from error


def longest_text(pattern: str) -> int | None:
    """The longest text, in characters, for which a checked regular expression is safe; None: any.

    Java recurses for each repetition of a group, and a stack overflow ends the whole process.
    """
    plain = _without_classes(_without_escapes(pattern))
    return _DEEPEST // plain.count("(") if _REPEATED_GROUP.search(plain) else None


def _without_escapes(pattern: str) -> str:
    """Without escaped punctuation, which is harmless everywhere."""
    return re.sub(r"\\[^A-Za-z0-9]", "", pattern)


def _without_classes(pattern: str) -> str:
    return re.sub(r"\[\^?\]?[^\]]*\]", "c", pattern)


def like_as_regex(pattern: str, escape: str) -> str | None:
    """A checked LIKE pattern as a regular expression of Java without backtracking.

    The text between two `%` is matched at its first occurrence, which is never worse than a later
    one. Spark's own expression tries all combinations; of a text of some thousand characters these
    are too many from the third `%` on. None: the pattern has no third.
    """
    parts, literal = [""], False
    for character in pattern:
        if literal or character not in (escape, "%", "_"):
            parts[-1] += _literally(character)
            literal = False
        elif character == escape:
            literal = True
        elif character == "%":
            parts.append("")
        else:
            parts[-1] += "."
    if len(parts) <= _WILDCARDS_OF_SPARK + 1:
        return None
    first, *middle, last = parts
    between = "".join(f"(?>.*?{part})" for part in middle if part)
    return rf"(?s)\A{first}{between}.*{last}\z"


def _literally(character: str) -> str:
    return character if character.isalnum() or not character.isascii() else f"\\{character}"


def check_like(pattern: str, escape: str) -> None:
    """Check a LIKE pattern: the escape character precedes `%`, `_` or itself only.

    Raises:
        FaultError: it does not.
    """
    if len(escape) != 1:
        raise FaultError("ESCAPE takes exactly one character")
    rest = iter(pattern)
    for character in rest:
        if character == escape and next(rest, "") not in ("%", "_", escape):
            raise FaultError(
                f"the LIKE pattern has a {escape!r} that escapes nothing",
                hint=f"write {escape * 2!r} for the character itself",
            )


def check_time_format(pattern: str, *, parsing: bool) -> None:
    """Check a date and time format such as `yyyy-MM-dd HH:mm:ss`.

    Raises:
        FaultError: it has letters or brackets without a stable meaning.
    """
    allowed = _PARSE_FORMAT if parsing else _PRINT_FORMAT
    if len(pattern) > _FORMAT_MAX or not allowed.fullmatch(pattern):
        raise FaultError(
            f"{pattern!r} is not a supported time format",
            hint="letters: yyyy MM dd HH mm ss SSS a XXX; other text in single quotes",
        )
    depth = 0
    for character in re.sub(r"'[^']*'", "", pattern):
        depth += (character == "[") - (character == "]")
        if depth not in (0, 1):
            raise FaultError(f"the brackets in {pattern!r} do not match")
    if depth:
        raise FaultError(f"the brackets in {pattern!r} do not match")
