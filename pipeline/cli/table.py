"""Tables for people, and how one fits a narrow terminal. Pure.

The rule: first the column that may stand below its row moves there. As long as the rest is too
wide, columns go that may: those first in which no row says anything, then the others, in the
order that the table names. What is too wide even then is folded in its widest column.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rich.cells import cell_len

GAP: Final = 2
"""Spaces between two columns."""
_NARROWEST = 8
_SAYS_NOTHING = frozenset({"", "-", "0"})


@dataclass(frozen=True, slots=True)
class Table:
    """Rows for people. `empty` is said instead of a table without rows.

    Args:
        numbers: the columns that are set to the right.
        spare: the columns that may be left out where there is no room, the first one first.
        below: the column whose texts stand below their rows where there is no room; "": none.
        styles: how to mark a text in a column, by both, in the words of `rich`.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    empty: str = "nothing to show"
    numbers: frozenset[str] = frozenset()
    spare: tuple[str, ...] = ()
    below: str = ""
    styles: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A table for a terminal.

    Args:
        table: with the columns that are shown beside each other.
        widths: of these columns.
        below: the text below each row; "": none.
        left_out: the columns that are not shown although they say something.
    """

    table: Table
    widths: tuple[int, ...]
    below: tuple[str, ...]
    left_out: tuple[str, ...]


def fit(table: Table, width: int) -> Fitted:
    """The table with as much as a terminal of so many columns has room for."""
    below = ("",) * len(table.rows)
    if _width(table) > width and table.below:
        below = _column(table, table.below)
        table = _without(table, table.below)
    left_out: list[str] = []
    silent = [name for name in table.spare if _SAYS_NOTHING.issuperset(_column(table, name))]
    for name in (*silent, *(name for name in table.spare if name not in silent)):
        if _width(table) <= width:
            break
        table = _without(table, name)
        if name not in silent:
            left_out.append(name)
    return Fitted(table, _folded(_widths(table), width), below, tuple(left_out))


def _without(table: Table, name: str) -> Table:
    at = table.columns.index(name)
    return replace(
        table,
        columns=(*table.columns[:at], *table.columns[at + 1 :]),
        rows=tuple((*row[:at], *row[at + 1 :]) for row in table.rows),
    )


def _column(table: Table, name: str) -> tuple[str, ...]:
    at = table.columns.index(name)
    return tuple(row[at] for row in table.rows)


def _widths(table: Table) -> tuple[int, ...]:
    return tuple(
        max(cell_len(name), *(cell_len(cell) for cell in _column(table, name)))
        for name in table.columns
    )


def _width(table: Table) -> int:
    return _total(_widths(table))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _folded(widths: tuple[int, ...], width: int) -> tuple[int, ...]:
    """The widths with less for the widest column, as far as that helps."""
    over = _total(widths) - width
    if over <= 0:
        return widths
    at = widths.index(max(widths))
    return (*widths[:at], max(_NARROWEST, widths[at] - over), *widths[at + 1 :])
