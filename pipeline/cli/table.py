"""Tables, and their fitting into a narrow terminal. Pure.

The rule: first the column `below` moves below its rows. While the rest is too wide, the columns in
`spare` are left out in order, empty ones before the others. If it is still too wide, its widest
column is folded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from rich.cells import cell_len

GAP: Final = 2
"""Spaces between two columns."""
_NARROWEST = 8
_EMPTY_CELLS = frozenset({"", "-", "0"})


@dataclass(frozen=True, slots=True)
class Table:
    """Table of texts; `empty` is printed instead of a table without rows.

    Args:
        numbers: right-aligned columns.
        spare: columns that may be left out if there is no room, in this order.
        below: column whose texts are moved below their rows if there is no room; "": none.
        styles: `rich` style of a cell, by column and text.
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
    """Table that is fitted to the width of a terminal.

    Args:
        table: with the remaining columns.
        widths: of these columns.
        below: the text below each row; "": none.
        left_out: columns that are not shown although they are not empty.
    """

    table: Table
    widths: tuple[int, ...]
    below: tuple[str, ...]
    left_out: tuple[str, ...]


def fit(table: Table, width: int) -> Fitted:
    """The table fitted to a terminal with this number of character columns."""
    below = ("",) * len(table.rows)
    if _width(table) > width and table.below:
        below = _column(table, table.below)
        table = _without(table, table.below)
    left_out: list[str] = []
    empty = [name for name in table.spare if _EMPTY_CELLS.issuperset(_column(table, name))]
    for name in (*empty, *(name for name in table.spare if name not in empty)):
        if _width(table) <= width:
            break
        table = _without(table, name)
        if name not in empty:
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
    """The widths with the widest one reduced, at most to `_NARROWEST`."""
    over = _total(widths) - width
    if over <= 0:
        return widths
    at = widths.index(max(widths))
    return (*widths[:at], max(_NARROWEST, widths[at] - over), *widths[at + 1 :])
