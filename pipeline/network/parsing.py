"""Parser of expressions: text in, syntax tree out, with sqlglot's Spark dialect.

sqlglot rewrites calls of known functions into its own forms. That is turned off: every call remains
a name with arguments, so that the one table of functions determines its meaning.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from pipeline.network.term import FaultError

TEXT_MAX = 8_000
"""The longest expression, in characters."""

DEPTH_MAX = 80
"""Limit of nesting; a chain of n operators counts n."""

_EXCERPT = 20
_TEXTS = (TokenType.CHAR, TokenType.NCHAR, TokenType.VARCHAR, TokenType.NVARCHAR)
_QUOTED = "a column of that name is written `{}`"
_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


class _PlainParser(SparkParser):
    """Spark's grammar without any special treatment of functions."""

    FUNCTIONS: ClassVar = {}
    NO_PAREN_FUNCTIONS: ClassVar = {}
    FUNCTION_PARSERS: ClassVar = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", "EXTRACT")
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar = {
        "CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"],
    }
    FUNCTIONS_WITH_ALIASED_ARGS: ClassVar = set()


_SPARK = Spark()


def parse(text: str, *, named: bool = False) -> exp.Expr:
    """The syntax tree of one expression.

    Args:
        text: as the user wrote it.
        named: it is in a list of columns, so a name means a column, even a reserved word.

    Raises:
        FaultError: it does not parse, is empty, too long or too deep; names the character.
    """
    if named and _NAME.fullmatch(text.strip()):
        text = ".".join(f"`{part}`" for part in text.strip().split("."))
    if not text.strip():
        raise FaultError("the expression is empty")
    if len(text) > TEXT_MAX:
        raise FaultError(f"the expression has more than {TEXT_MAX} characters")
    try:
        tokens = _SPARK.tokenize(text)
        _refuse_lengths(tokens)
        trees = _PlainParser(dialect=_SPARK).parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        raise _not_sql(text, error) from error
    except (SqlglotError, ValueError) as error:
        raise FaultError("the expression does not parse: a quote or escape is wrong") from error
    except RecursionError as error:
        raise _too_deep() from error
    found = [tree for tree in trees if tree is not None]
    if len(found) != 1:
        raise FaultError("needs exactly one expression, without a semicolon")
    _check_depth(found[0])
    return found[0]


def _refuse_lengths(tokens: Sequence[Token]) -> None:
    """Reject `VARCHAR(2)`, of which sqlglot, as Spark in a CAST, would keep only the type."""
    for token, following in pairwise(tokens):
        if token.token_type in _TEXTS and following.token_type is TokenType.L_PAREN:
            raise FaultError(
                f"{token.text.upper()}(n): a text has no type with a length",
                hint="CAST to STRING, and left(text, n) cuts it",
            )


def _check_depth(tree: exp.Expr) -> None:
    level: list[exp.Expr] = [tree]
    for _ in range(DEPTH_MAX):
        level = [child for node in level for child in node.iter_expressions()]
        if not level:
            return
    raise _too_deep()


def _too_deep() -> FaultError:
    return FaultError(
        f"the expression is nested more than {DEPTH_MAX} deep", hint="compute parts in a map box"
    )


def _not_sql(text: str, error: ParseError) -> FaultError:
    details = error.errors[0] if error.errors else {}
    near, before = details.get("highlight"), details.get("start_context")
    word = next(iter(str(details.get("description", "")).splitlines()), "")
    if not isinstance(near, str) or not near:
        return FaultError("the expression does not parse", hint=word)
    at = _position(text, near, before if isinstance(before, str) else "")
    if near.upper() == "SELECT":
        message = f"a SELECT inside an expression is refused (character {at})"
        return FaultError(message, hint=f"use a join box; {_QUOTED.format(near)}")
    shown = near if len(near) <= _EXCERPT else near[:_EXCERPT] + "…"
    hint = _QUOTED.format(near) if near.upper() in _SPARK.tokenizer_class.KEYWORDS else ""
    return FaultError(f"the expression does not parse at character {at}, {shown!r}", hint=hint)


def _position(text: str, near: str, before: str) -> int:
    """The character at which the parser stopped, counted from 1."""
    found = text.find(before + near)
    return (found + len(before) if found >= 0 else max(0, text.find(near))) + 1
