"""union: all rows of several streams that have the same columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.ids import BoxName, StreamName
from pipeline.nearest import nearest_first
from pipeline.network.boxes.common import (
    Defaults,
    Draft,
    Output,
    StreamFacts,
    key_or,
    read_header,
    refuse_unreadable,
)
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.logic import difference_hint
from pipeline.network.types import Column, EnumForm, Form

LEAST_INPUTS = 2


@dataclass(frozen=True, slots=True)
class Union(Output):
    """`{union: [STREAM, STREAM, …]}`; event time passes, and keys do unless one is declared.

    The columns are those of the first stream; each other stream has the same names and types, in
    any order. A column is nullable if it is nullable in any of them.
    """

    name: BoxName
    inputs: tuple[StreamName, ...]

    kind = "union"


@dataclass(frozen=True, slots=True)
class UnionDraft(Draft):
    """A union as written."""

    inputs: tuple[Text, ...]

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Union | None:
        """Compare the streams with the first one, column by column."""
        first, *others = inputs
        same = [
            self._same(first, other, at, report)
            for other, at in zip(others, self.inputs[1:], strict=True)
        ]
        unreadable = [refuse_unreadable(facts, self.header, report) for facts in inputs]
        if not all(same) or any(unreadable):
            return None
        columns = tuple(_merged(column, inputs) for column in first.columns)
        key = key_or(self.header, columns, report, ())
        if key is None:
            return None
        times = {facts.event_time_column and facts.event_time_column.lower() for facts in inputs}
        return Union(
            name=self.name,
            inputs=tuple(facts.name for facts in inputs),
            columns=columns,
            event_time_column=first.event_time_column if len(times) == 1 else None,
            key=key,
        )

    def _same(self, first: StreamFacts, other: StreamFacts, at: Text, report: Report) -> bool:
        """Whether a stream has the columns of the first one; each difference is reported."""
        theirs = {column.name.lower(): column for column in other.columns}
        ours = {column.name.lower() for column in first.columns}
        fine = True
        for column in first.columns:
            found = theirs.get(column.name.lower())
            if found is None:
                fine = False
                report.add(
                    f"{other.name} has no column {column.name}, which {first.name} has",
                    at.line,
                    box=self.name,
                    column=column.name,
                    choices=nearest_first(column.name, tuple(c.name for c in other.columns)),
                    hint=f"put a map box in between that gives {other.name} the same columns",
                )
            elif found.type != column.type:
                fine = False
                report.add(
                    f"{column.name} is {column.type} in {first.name} and {found.type} in "
                    f"{other.name}",
                    at.line,
                    box=self.name,
                    column=column.name,
                    hint=difference_hint(column.type, found.type, "CAST one of them in a map box"),
                )
        for name in theirs.keys() - ours:
            fine = False
            report.add(
                f"{other.name} has a column {theirs[name].name}, which {first.name} has not",
                at.line,
                box=self.name,
                column=theirs[name].name,
                hint=f"put a map box in between that gives {other.name} the same columns",
            )
        return fine


def read(name: BoxName, fields: Fields, _defaults: Defaults) -> UnionDraft | None:
    """Read a union from its YAML."""
    header = read_header(name, fields)
    streams = fields.texts(Union.kind)
    if streams is None:
        return None
    if len(streams) < LEAST_INPUTS:
        fields.problem(f"{fields.what} needs at least two streams", fields.line_of(Union.kind))
        return None
    seen: set[str] = set()
    for stream in streams:
        if stream.value in seen:
            fields.problem(
                f"{fields.what} names {stream.value} twice, so each of its rows would come twice",
                stream.line,
            )
            return None
        seen.add(stream.value)
    return UnionDraft(header, streams)


def _merged(column: Column, inputs: Sequence[StreamFacts]) -> Column:
    """The column of the union."""
    every = [c for facts in inputs for c in facts.columns if c.name.lower() == column.name.lower()]
    return replace(
        column,
        nullable=any(c.nullable for c in every),
        millis=all(c.millis for c in every),
        form=_common_form([c.form for c in every]),
    )


def _common_form(forms: Sequence[Form | None]) -> Form | None:
    """The written form of the values of all streams: enums of one name get the symbols of all.

    So a producer of one stream can add a symbol. If the names differ, it is a plain string.
    """
    first, *others = forms
    if all(form == first for form in others):
        return first
    enums = [form for form in forms if isinstance(form, EnumForm)]
    if len(enums) < len(forms) or len({form.name for form in enums}) > 1:
        return None
    symbols = dict.fromkeys(symbol for form in enums for symbol in form.symbols)
    defaults = {form.default for form in enums}
    return EnumForm(enums[0].name, tuple(symbols), defaults.pop() if len(defaults) == 1 else None)
