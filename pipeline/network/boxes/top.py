"""top: the rows of each window and group with the highest, or lowest, value of an expression."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    OneInput,
    SingleInput,
    StreamFacts,
    check_distinct,
    check_groups,
    columns_of,
    compute,
    key_or,
    read_entries,
    read_header,
    read_select,
    refuse_unreadable,
)
from pipeline.network.boxes.shape import Shape, Sources, Windowed
from pipeline.network.boxes.windows import WINDOW_COLUMNS, WINDOW_END, Window, read_window
from pipeline.network.coercion import is_orderable
from pipeline.network.expressions import check
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import Computed, Expression, Origin
from pipeline.network.scope import Scope, Source
from pipeline.network.sql_text import quoted
from pipeline.network.types import Column, Scalar

RANK = "rank"
ROWS_MAX = 1_000
"""Limit of rows per window and group: all of them are in the state."""

HIGHEST, LOWEST = "highest", "lowest"


@dataclass(frozen=True, slots=True)
class Top(SingleInput):
    """`{top: STREAM, rows: 3, highest: EXPRESSION, window: WINDOW, by: [COLUMN, …], select: {…}}`.

    Output columns: the group columns, `window_start`, `window_end`, `rank` (INT, from 1), then the
    selected ones. Event time is `window_end`; the key is `by`, or `window_end` where `by` is empty,
    unless declared.

    Args:
        rows: maximum number of output rows per window and group.
        ordered_by: the compared expression; rows for which it is null are ignored.
        highest: whether the highest are kept; otherwise the lowest.
    """

    window: Window
    by: tuple[Computed, ...]
    rows: int
    ordered_by: Expression
    highest: bool
    select: tuple[Computed, ...]

    kind = "top"


@dataclass(frozen=True, slots=True)
class TopDraft(OneInput):
    """A top as written. `window` is None if invalid (reported), `select` if missing."""

    window: Window | None
    by: tuple[Entry, ...]
    rows: int
    order: Entry
    select: tuple[Entry, ...] | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The groups, the compared expression, and the columns."""
        return (*self.by, self.order, *(self.select or ()))

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Top | None:
        """Check all expressions; derive columns, event time and key."""
        (facts,) = inputs
        scope = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        by = compute(self.by, scope, report, self.name, "by")
        fine = by is not None and check_groups(self.header, self.by, by, report)
        order = self._order(scope, report)
        entries = self.select or self._all_columns(facts, report)
        select = None if entries is None else compute(entries, scope, report, self.name, "select")
        if by is None or order is None or entries is None or select is None or not fine:
            return None
        rank = Column(RANK, Scalar.INT, nullable=False)
        columns = (*columns_of(by), *WINDOW_COLUMNS, rank, *columns_of(select))
        what = "the columns of by, window_start, window_end, rank, those of select"
        if not check_distinct(self.header, columns, (*self.by, *entries), what, report):
            return None
        default = tuple(c.name for c in by) or (WINDOW_END,)
        key = key_or(self.header, columns, report, default)
        if key is None or self.window is None:
            return None
        return Top(
            name=self.name,
            input=facts.name,
            window=self.window,
            by=by,
            rows=self.rows,
            ordered_by=order,
            highest=self.order.name.value == HIGHEST,
            select=select,
            columns=columns,
            event_time_column=WINDOW_END,
            key=key,
        )

    def _order(self, scope: Scope, report: Report) -> Expression | None:
        name, text = self.order.name.value, self.order.text
        checked = check(text.value, scope, origin=Origin(self.name, name))
        report.faults(checked.faults, text.line, box=self.name, column=name)
        found = checked.expression
        if found is not None and (not is_orderable(found.type) or found.type is Scalar.NULL):
            report.add(
                f"{name} is {found.type}, and rows cannot be compared by that",
                text.line,
                box=self.name,
                column=name,
            )
            return None
        return found

    def _all_columns(self, facts: StreamFacts, report: Report) -> tuple[Entry, ...] | None:
        """Every column of the input except the groups, under its own name."""
        if refuse_unreadable(facts, self.header, report):
            return None
        groups = {entry.name.value.lower() for entry in self.by}
        names = [c.name for c in facts.columns if c.name.lower() not in groups]
        return tuple(Entry(Text(name, self.line), Text(quoted(name), self.line)) for name in names)


def _read_order(fields: Fields) -> Entry | None:
    """`highest` or `lowest`, exactly one of them; None: reported."""
    found = [(word, fields.text(word)) for word in (HIGHEST, LOWEST)]
    given = [Entry(Text(word, text.line), text) for word, text in found if text is not None]
    if len(given) != 1:
        both = "not both" if given else "highest: EXPRESSION or lowest: EXPRESSION"
        fields.problem(
            f"{fields.what} needs highest or lowest: what its rows are compared by, {both}",
            fields.line,
        )
        return None
    return given[0]


def read(name: BoxName, fields: Fields, defaults: Defaults) -> TopDraft | None:
    """Read a top from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Top.kind, required=True)
    window = read_window(fields, defaults)
    by = read_entries(fields, "by", plain_list=True) if fields.has("by") else ()
    fields.known.append("by")
    fields.required("rows")
    rows = fields.integer("rows", 1, low=1, high=ROWS_MAX)
    order = _read_order(fields)
    select = read_select(fields)
    broken = fields.has("select") and select is None
    if stream is None or by is None or order is None or broken:
        return None
    return TopDraft(header, stream, window, by, rows, order, select)


def shape(box: Top, _sources: Sources) -> Shape:
    """As an aggregate over the same windows."""
    return Windowed(box.window)
