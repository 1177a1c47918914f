"""aggregate: one row per window and group, emitted when event time passes the window's end."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.aggregates import Aggregation, Collector
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
)
from pipeline.network.boxes.sessions import SessionWindow, read_session
from pipeline.network.boxes.shape import Sessions, Shape, Sources, Windowed
from pipeline.network.boxes.windows import WINDOW_COLUMNS, WINDOW_END, Window, read_window
from pipeline.network.expressions import check_with
from pipeline.network.fields import Fields, Report
from pipeline.network.model import Computed, Origin, columns_read
from pipeline.network.scope import Scope, Source
from pipeline.network.types import Column, Columns, Scalar


@dataclass(frozen=True, slots=True)
class Aggregate(SingleInput):
    """`{aggregate: STREAM, window: WINDOW, by: [COLUMN, …], compute: {COLUMN: EXPRESSION, …}}`.

    Output columns: the group columns, `window_start`, `window_end` (TIMESTAMP, not null), then the
    computed ones. `compute` expressions are over the group columns, the two window columns and
    the placeholders of `aggregations`. Event time is `window_end`; the key is `by`, or `window_end`
    where `by` is empty, unless declared. With `session: SESSION` instead of `window`, the two
    window columns are those of the session.
    """

    window: Window | SessionWindow
    by: tuple[Computed, ...]
    aggregations: tuple[Aggregation, ...]
    compute: tuple[Computed, ...]

    kind = "aggregate"


@dataclass(frozen=True, slots=True)
class AggregateDraft(OneInput):
    """An aggregate as written. `window` is None where it was missing or wrong (reported)."""

    window: Window | SessionWindow | None
    by: tuple[Entry, ...]
    compute: tuple[Entry, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The groups and the computed columns."""
        return (*self.by, *self.compute)

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Aggregate | None:
        """Check groups and computed columns; derive columns, event time and key."""
        (facts,) = inputs
        rows = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        by = compute(self.by, rows, report, self.name, "by")
        fine = by is not None and check_groups(self.header, self.by, by, report)
        groups = _group_columns(self.by, by)
        collector = Collector(rows)
        computed = self._computed(collector, _compute_scope(groups, facts), report)
        columns = (*groups, *WINDOW_COLUMNS, *columns_of(computed or ()))
        what = "the columns of by, window_start, window_end, those of compute"
        if by is None or computed is None or not fine:
            return None
        if not check_distinct(self.header, columns, self.entries, what, report):
            return None
        default = tuple(c.name for c in by) or (WINDOW_END,)
        key = key_or(self.header, columns, report, default)
        if key is None or self.window is None:
            return None
        return Aggregate(
            name=self.name,
            input=facts.name,
            window=self.window,
            by=by,
            aggregations=tuple(collector.found),
            compute=computed,
            columns=columns,
            event_time_column=WINDOW_END,
            key=key,
        )

    def _computed(
        self, collector: Collector, groups: Scope, report: Report
    ) -> tuple[Computed, ...] | None:
        made: list[Computed] = []
        for entry in self.compute:
            origin = Origin(self.name, f"compute.{entry.name.value}")
            checked = check_with(entry.text.value, collector.walk(groups, origin), origin=origin)
            report.faults(checked.faults, entry.text.line, box=self.name, column=entry.name.value)
            if checked.expression is not None:
                made.append(Computed(entry.name.value, checked.expression))
        return tuple(made) if len(made) == len(self.compute) else None


def _group_columns(entries: Sequence[Entry], by: Sequence[Computed] | None) -> Columns:
    """The group columns; if `by` is invalid, names only, so that `compute` can still be checked."""
    if by is not None:
        return columns_of(by)
    return tuple(Column(entry.name.value, Scalar.STRING, nullable=True) for entry in entries)


def _compute_scope(groups: Columns, facts: StreamFacts) -> Scope:
    named = {column.name.lower() for column in groups}
    reason = "it is neither in by nor inside an aggregate function such as max(…)"
    hidden = {c.name: reason for c in facts.columns if c.name.lower() not in named}
    return Scope((Source((*groups, *WINDOW_COLUMNS), hidden=hidden),))


def _read_window(fields: Fields, defaults: Defaults) -> Window | SessionWindow | None:
    """`window` or `session` of the box. None: invalid (reported)."""
    fields.known.extend(("window", "session"))
    if not fields.has("session"):
        return read_window(fields, defaults)
    if fields.has("window"):
        fields.problem(
            f"{fields.what} has window and session, and only one of them can be",
            fields.line_of("session"),
        )
        return None
    return read_session(fields, defaults)


def read(name: BoxName, fields: Fields, defaults: Defaults) -> AggregateDraft | None:
    """Read an aggregate from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Aggregate.kind, required=True)
    window = _read_window(fields, defaults)
    by = read_entries(fields, "by", plain_list=True) if fields.has("by") else ()
    fields.known.append("by")
    fields.required("compute")
    entries = read_entries(fields, "compute", plain_list=False)
    if entries is not None and not entries:
        fields.problem(f"compute of {fields.what} computes nothing", fields.line_of("compute"))
    if stream is None or by is None or not entries:
        return None
    return AggregateDraft(header, stream, window, by, entries)


def reads(box: Aggregate, _stream: StreamName) -> frozenset[str]:
    """The columns of groups and arguments; `compute` is over their results."""
    arguments = (expression for call in box.aggregations for expression in call.reads)
    return columns_read((*(group.expression for group in box.by), *arguments))


def shape(box: Aggregate, _sources: Sources) -> Shape:
    """Windows or sessions."""
    window = box.window
    return Sessions(window) if isinstance(window, SessionWindow) else Windowed(window)
