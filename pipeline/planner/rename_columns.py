r"""Renaming the columns that a checked expression reads, without parsing SQL again.

A checked expression's `sql` has every column in back-quotes, qualified as `left`.`x` or `right`.`x`
in a join. So a scan for string literals and back-quoted names is enough: the first name of a path
is a column (after its side, in a join), names behind a dot are fields of a structure.
"""

import re
from collections.abc import Mapping

from pipeline.network.model import ColumnRef, Expression
from pipeline.network.scope import SIDES

_TOKEN = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|`(?:[^`]|``)*`|.", re.DOTALL)

_QUALIFIED = re.compile(
    r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|(?<![\w.`])`?\b(left|right)\b`?\.`?(\w+)`?",
    re.IGNORECASE,
)


def plain_column(expression: Expression) -> ColumnRef | None:
    """The column that an expression repeats unchanged; None if it computes something.

    >>> from pipeline.network.types import Scalar
    >>> ref = ColumnRef("road", "left")
    >>> plain_column(
    ...     Expression("road", "`left`.`road`", None, Scalar.STRING, False, frozenset({ref}))
    ... )
    ColumnRef(name='road', side='left')
    """
    if len(expression.columns) != 1 or expression.failed is not None:
        return None
    (column,) = expression.columns
    return column if expression.sql == column_sql(column) else None


def column_sql(column: ColumnRef) -> str:
    """A column as written in a checked expression."""
    name = f"`{column.name.replace('`', '``')}`"
    return f"`{column.side}`.{name}" if column.side else name


def rename(expression: Expression, names: Mapping[ColumnRef, ColumnRef]) -> Expression:
    """The same expression over renamed columns; those not in `names` are unchanged."""
    sided = any(column.side for column in expression.columns)
    failed = expression.failed
    return Expression(
        text=expression.text,
        sql=rename_sql(expression.sql, names, sided=sided),
        failed=None if failed is None else rename_sql(failed, names, sided=sided),
        type=expression.type,
        nullable=expression.nullable,
        columns=frozenset(names.get(column, column) for column in expression.columns),
        origin=expression.origin,
    )


def rename_sql(sql: str, names: Mapping[ColumnRef, ColumnRef], *, sided: bool) -> str:
    """Rename columns in checked SQL; `sided`: whether they are qualified by a join's side.

    >>> to_plain = {ColumnRef("n", "left"): ColumnRef("n"), ColumnRef("n", "right"): ColumnRef("m")}
    >>> rename_sql("`left`.`n` + `right`.`n`.`n` || '`left`.`n`'", to_plain, sided=True)
    "`n` + `m`.`n` || '`left`.`n`'"
    """
    tokens = _TOKEN.findall(sql)
    parts: list[str] = []
    at = 0
    while at < len(tokens):
        column, length = _column_at(tokens, at, sided=sided)
        if column is None:
            parts.append(tokens[at])
        else:
            renamed = names.get(column)
            parts.append(
                "".join(tokens[at : at + length]) if renamed is None else column_sql(renamed)
            )
        at += length
    return "".join(parts)


def without_sides(text: str, right_names: Mapping[str, str]) -> str:
    """A join's expression as displayed where there are no sides any more.

    >>> without_sides("left.n - right.n + left(t, 2) || 'left.n'", {"n": "n_2"})
    "n - n_2 + left(t, 2) || 'left.n'"
    """

    def plain(found: re.Match[str]) -> str:
        side, name = found.groups()
        if side is None:
            return found.group()
        return right_names.get(name, name) if side.lower() == "right" else str(name)

    return _QUALIFIED.sub(plain, text)


def _column_at(tokens: list[str], at: int, *, sided: bool) -> tuple[ColumnRef | None, int]:
    """The column that begins at a token, and how many tokens it takes."""
    if not _quoted(tokens[at]) or (at > 0 and tokens[at - 1] == "."):
        return None, 1
    name = _unquote(tokens[at])
    if not sided:
        return ColumnRef(name), 1
    qualified = tokens[at + 1 : at + 3]
    if name in SIDES and len(qualified) == 2 and qualified[0] == "." and _quoted(qualified[1]):  # noqa: PLR2004 - a dot and a name
        return ColumnRef(_unquote(qualified[1]), name), 3
    return None, 1


def _quoted(token: str) -> bool:
    return len(token) > 1 and token.startswith("`")


def _unquote(token: str) -> str:
    return token[1:-1].replace("``", "`")
