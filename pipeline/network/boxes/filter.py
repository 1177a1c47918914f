"""filter: keeps the rows for which a condition is true; false and null drop a row."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    OneInput,
    SingleInput,
    StreamFacts,
    key_or,
    read_header,
    refuse_unreadable,
)
from pipeline.network.expressions import check
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import Expression, Origin
from pipeline.network.scope import Scope, Source
from pipeline.network.types import Scalar


@dataclass(frozen=True, slots=True)
class Filter(SingleInput):
    """`{filter: STREAM, where: CONDITION}`; columns, key and event time pass unchanged."""

    where: Expression

    kind = "filter"


@dataclass(frozen=True, slots=True)
class FilterDraft(OneInput):
    """A filter as written."""

    where: Text

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The condition."""
        return (Entry(Text("where", self.where.line), self.where),)

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Filter | None:
        """Check the condition; columns and event time are the input's."""
        (facts,) = inputs
        scope = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        origin = Origin(self.name, "where")
        checked = check(self.where.value, scope, wants=Scalar.BOOLEAN, origin=origin)
        report.faults(checked.faults, self.where.line, box=self.name, column="where")
        key = key_or(self.header, facts.columns, report, ())
        if refuse_unreadable(facts, self.header, report) or not checked.expression or key is None:
            return None
        return Filter(
            name=self.name,
            input=facts.name,
            where=checked.expression,
            columns=facts.columns,
            event_time_column=facts.event_time_column,
            key=key,
        )


def read(name: BoxName, fields: Fields, _defaults: Defaults) -> FilterDraft | None:
    """Read a filter from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Filter.kind, required=True)
    where = fields.text("where", required=True)
    return FilterDraft(header, stream, where) if stream and where else None
