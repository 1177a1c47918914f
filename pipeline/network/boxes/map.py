"""map: computes new columns from the columns of each row."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    OneInput,
    SingleInput,
    StreamFacts,
    columns_of,
    compute,
    key_or,
    read_header,
    read_select,
    unchanged_column,
)
from pipeline.network.fields import Fields, Report
from pipeline.network.model import ColumnRef, Computed
from pipeline.network.scope import Scope, Source


@dataclass(frozen=True, slots=True)
class Map(SingleInput):
    """`{map: STREAM, select: {COLUMN: EXPRESSION, …}}`; one row in, one row out."""

    select: tuple[Computed, ...]

    kind = "map"


@dataclass(frozen=True, slots=True)
class MapDraft(OneInput):
    """A map as written."""

    select: tuple[Entry, ...]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The columns."""
        return self.select

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Map | None:
        """Check the expressions; the event time is kept, under its new name if it is selected."""
        (facts,) = inputs
        scope = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        select = compute(self.select, scope, report, self.name, "select")
        if select is None:
            return None
        columns = columns_of(select)
        key = key_or(self.header, columns, report, ())
        if key is None:
            return None
        event_time = (ColumnRef(facts.event_time_column),) if facts.event_time_column else ()
        return Map(
            name=self.name,
            input=facts.name,
            select=select,
            columns=columns,
            event_time_column=unchanged_column(select, event_time),
            key=key,
        )


def read(name: BoxName, fields: Fields, _defaults: Defaults) -> MapDraft | None:
    """Read a map from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Map.kind, required=True)
    fields.required("select")
    select = read_select(fields)
    return MapDraft(header, stream, select) if stream and select else None
