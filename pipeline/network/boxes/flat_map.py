"""flat_map: one row per element of an array of a row."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    OneInput,
    SingleInput,
    StreamFacts,
    column_name_problem,
    columns_of,
    compute,
    key_or,
    read_entries,
    read_header,
    read_select,
    unchanged_column,
)
from pipeline.network.expressions import check
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import ColumnRef, Computed, Origin
from pipeline.network.scope import Scope, Source
from pipeline.network.types import ArrayType, Column, Scalar

AT_MOST = 1_000
AT_MOST_MAX = 100_000


@dataclass(frozen=True, slots=True)
class FlatMap(SingleInput):
    """`{flat_map: STREAM, each: {ELEMENT: ARRAY}, select: {COLUMN: EXPRESSION, …}}`.

    Args:
        each: the name of an element, and the array, over the input's columns.
        select: over the input's columns, the element and its index.
        at: the name of the element's index, an INT from 0; None: no such column.
        at_most: a record with more elements fails.
    """

    each: Computed
    select: tuple[Computed, ...]
    at: str | None = None
    at_most: int = AT_MOST

    kind = "flat_map"


@dataclass(frozen=True, slots=True)
class FlatMapDraft(OneInput):
    """A flat_map as written."""

    each: Entry
    select: tuple[Entry, ...]
    at: Text | None
    at_most: int

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The array and the columns."""
        return (self.each, *self.select)

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> FlatMap | None:
        """Check the array, then the columns, which may use its element and index."""
        (facts,) = inputs
        each = self._array(facts, report)
        if each is None or not isinstance(each.expression.type, ArrayType):
            return None
        array = each.expression.type
        added = [Column(each.name, array.element, array.element_nullable)]
        if self.at is not None:
            added.append(Column(self.at.value, Scalar.INT, nullable=False))
        if not self._new(facts, report):
            return None
        scope = Scope((Source((*facts.columns, *added), unreadable=facts.unreadable),))
        select = compute(self.select, scope, report, self.name, "select")
        if select is None:
            return None
        columns = columns_of(select)
        key = key_or(self.header, columns, report, ())
        if key is None:
            return None
        event_time = (ColumnRef(facts.event_time_column),) if facts.event_time_column else ()
        return FlatMap(
            name=self.name,
            input=facts.name,
            each=each,
            select=select,
            columns=columns,
            event_time_column=unchanged_column(select, event_time),
            key=key,
            at=self.at.value if self.at else None,
            at_most=self.at_most,
        )

    def _array(self, facts: StreamFacts, report: Report) -> Computed | None:
        name, text = self.each.name, self.each.text
        scope = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        checked = check(text.value, scope, origin=Origin(self.name, f"each.{name.value}"))
        report.faults(checked.faults, text.line, box=self.name, column=name.value)
        found = checked.expression
        if found is None:
            return None
        if not isinstance(found.type, ArrayType):
            report.add(
                f"each needs an array, not {found.type}",
                text.line,
                box=self.name,
                column=name.value,
                hint="split(text, ',') makes an array of a text"
                if found.type is Scalar.STRING
                else "",
            )
            return None
        return Computed(name.value, found)

    def _new(self, facts: StreamFacts, report: Report) -> bool:
        """Whether the names of the element and its index are free; otherwise reported."""
        taken = {column.name.lower(): f"a column of {facts.name}" for column in facts.columns}
        fine = True
        for name, what in ((self.each.name, "the element"), (self.at, "the place of the element")):
            if name is None:
                continue
            if name.value.lower() in taken:
                fine = False
                report.add(
                    f"{what} is called {name.value}, as is {taken[name.value.lower()]}",
                    name.line,
                    box=self.name,
                    column=name.value,
                    hint="give it another name",
                )
            taken[name.value.lower()] = what
        return fine


def read(name: BoxName, fields: Fields, _defaults: Defaults) -> FlatMapDraft | None:
    """Read a flat_map from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(FlatMap.kind, required=True)
    each = _read_each(fields)
    at = fields.text("at")
    unfit, hint = column_name_problem(at.value) if at else ("", "")
    if at and unfit:
        fields.problem(unfit, at.line, column=at.value, hint=hint)
    at_most = fields.integer("at_most", AT_MOST, low=1, high=AT_MOST_MAX)
    fields.required("select")
    select = read_select(fields)
    if not (stream and each and select) or unfit:
        return None
    return FlatMapDraft(header, stream, each, select, at, at_most)


def _read_each(fields: Fields) -> Entry | None:
    fields.required("each")
    entries = read_entries(fields, "each", plain_list=False)
    if entries is None:
        return None
    if len(entries) != 1:
        fields.problem(
            f"each of {fields.what} must name one array",
            fields.line_of("each"),
            hint="write each: {item: items}",
        )
        return None
    return entries[0]
