r"""Patterns inside expressions: LIKE, regular expressions, date and time formats.

Spark looks at them only when the query runs, and a malformed one stops it. So they must be literals
and are checked here: a little stricter than Java is, never laxer.
"""

import re
import warnings

from pipeline.network.term import FaultError

_REGEX_MAX = 1_000
_FORMAT_MAX = 100

_PYTHON_ONLY = re.compile(r"\(\?P|\(\?#|\(\?\(|\(\?[A-Za-z]*[aLx]|\\[UNZ]")
r"""What Python takes and Java does not, or means otherwise: `(?P<n>`, `(?#…)`, `(?(1)…)`, `\Z`."""

_BRACE = re.compile(r"\{(?!\d+(,\d*)?\})")
"""A brace that begins no count; Java refuses it unless it is escaped."""

_FORMAT_PART = (
    r"yyyy|yy|MMMM|MMM|MM|M|dd|d|HH|H|hh|h|mm|m|ss|s|S{1,9}|a|XXX|XX|X|'[^']*'|[-/:.,_ \[\]]"
)
_PARSE_FORMAT = re.compile(f"(?:{_FORMAT_PART})+")
_PRINT_FORMAT = re.compile(f"(?:{_FORMAT_PART}|EEEE|EEE|DDD)+")


def check_regex(pattern: str) -> int:
    """Check a regular expression; the number of its groups.

    Raises:
        FaultError: it does not parse, or uses what Java and Python read differently.
    """
    if len(pattern) > _REGEX_MAX:
        raise FaultError(f"a regular expression of more than {_REGEX_MAX} characters")
    plain = re.sub(r"\\[^A-Za-z0-9]", "", pattern)  # escaped punctuation is harmless everywhere
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


def check_like(pattern: str, escape: str) -> None:
    """Check a LIKE pattern: the escape character stands before `%`, `_` or itself only.

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
        FaultError: it has letters or brackets that cannot be relied on.
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
