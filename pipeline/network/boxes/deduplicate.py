"""deduplicate: drops a row if another row with the same key precedes it within a duration."""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.boxes.common import (
    Defaults,
    OneInput,
    SingleInput,
    StreamFacts,
    are_unique,
    input_column,
    key_or,
    read_header,
    refuse_unreadable,
    window_size,
)
from pipeline.network.boxes.shape import Joined, Shape, Sources
from pipeline.network.coercion import is_orderable
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.types import Column


@dataclass(frozen=True, slots=True)
class Deduplicate(SingleInput):
    """`{deduplicate: STREAM, by: [COLUMN, …], within: DURATION}`; all columns and the key pass.

    A row is dropped if a row with equal `by` columns precedes it, by event time and then by
    position, at most `within_ms` of event time earlier, whether or not that row is dropped itself.
    A null equals nothing.
    """

    by: tuple[str, ...]
    within_ms: int

    kind = "deduplicate"


@dataclass(frozen=True, slots=True)
class DeduplicateDraft(OneInput):
    """A box as written."""

    by: tuple[Text, ...]
    within_ms: int

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Deduplicate | None:
        """Resolve the columns; columns, event time and key are the input's."""
        (facts,) = inputs
        by = [self._column(facts, text, report) for text in self.by]
        once = are_unique(self.by, "by", report, self.name)
        key = key_or(self.header, facts.columns, report, ())
        if refuse_unreadable(facts, self.header, report) or key is None:
            return None
        names = tuple(column.name for column in by if column is not None)
        if not once or len(names) < len(self.by):
            return None
        return Deduplicate(
            name=self.name,
            input=facts.name,
            by=names,
            within_ms=self.within_ms,
            columns=facts.columns,
            event_time_column=facts.event_time_column,
            key=key,
        )

    def _column(self, facts: StreamFacts, name: Text, report: Report) -> Column | None:
        column = input_column(facts, name, "by", report, self.name)
        if column is None or is_orderable(column.type):
            return column
        message = f"by names {column.name}, but values of type {column.type} cannot be compared"
        report.add(message, name.line, box=self.name, column=column.name)
        return None


def read(name: BoxName, fields: Fields, defaults: Defaults) -> DeduplicateDraft | None:
    """Read the box from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Deduplicate.kind, required=True)
    by = fields.texts("by")
    if by is None and not fields.has("by"):
        fields.required("by")
    elif by == ():
        fields.problem(f"by of {fields.what} names no column", fields.line_of("by"))
    within = fields.text("within")
    if within is None and not fields.has("within"):
        fields.problem(
            f"{fields.what} needs within: for how long repeats of a row are dropped",
            fields.line,
            hint="write within: 10m; keys are kept for so long",
        )
    within_ms = window_size(fields, "within", within, defaults, low=0)
    if stream is None or not by or within_ms is None:
        return None
    return DeduplicateDraft(header, stream, by, within_ms)


def reads(box: Deduplicate, _stream: StreamName) -> frozenset[str]:
    """The compared columns."""
    return frozenset(box.by)


def shape(box: Deduplicate, _sources: Sources) -> Shape:
    """As a left join with the rows from t - within to t."""
    return Joined(box.within_ms, behind_ms=1, waits=True)
