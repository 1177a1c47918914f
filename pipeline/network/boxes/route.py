"""route: sends each record of a stream to the first of several streams whose condition is true.

In the network it is several boxes. The route evaluates the conditions and writes the branch into a
column; one branch box per output stream, with the stream's name, keeps its own records. Only the
branches read the route's output.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.ids import BoxName, StreamName
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    Header,
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
from pipeline.network.types import Column, Scalar

BRANCH = "__branch"
"""The column with the branch of a record."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A branch, and the condition of its records."""

    branch: BoxName
    where: Expression


@dataclass(frozen=True, slots=True)
class Route(SingleInput):
    """`{route: STREAM, to: {BRANCH: CONDITION, …}, otherwise: BRANCH}`.

    A record is sent to the first branch whose condition is true, else to `otherwise` (None: drop).
    Its columns are those of the input and `BRANCH`; key and event time pass.
    """

    to: tuple[Choice, ...]
    otherwise: BoxName | None

    kind = "route"


@dataclass(frozen=True, slots=True)
class Branch(SingleInput):
    """One of the output streams of a route; columns, key and event time are its input's."""

    kind = "branch"


@dataclass(frozen=True, slots=True)
class BranchDraft(OneInput):
    """A branch as named by the route."""

    def build(self, inputs: Sequence[StreamFacts], _report: Report) -> Branch:
        """The route's input, without the column that only branches read."""
        (facts,) = inputs
        columns = tuple(column for column in facts.columns if column.name != BRANCH)
        return Branch(
            self.name, facts.name, columns=columns, event_time_column=facts.event_time_column
        )


@dataclass(frozen=True, slots=True)
class RouteDraft(OneInput):
    """A route as written. `to` contains names of branches with conditions."""

    to: tuple[Entry, ...]
    otherwise: Text | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The conditions."""
        return self.to

    @property
    def parts(self) -> tuple[BranchDraft, ...]:
        """The branches."""
        names = [entry.name for entry in self.to]
        if self.otherwise is not None:
            names.append(self.otherwise)
        return tuple(
            BranchDraft(Header(BoxName(name.value), name.line, None), Text(self.name, name.line))
            for name in names
        )

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Route | None:
        """Check the conditions; columns and event time are the input's."""
        (facts,) = inputs
        scope = Scope((Source(facts.columns, unreadable=facts.unreadable),))
        to: list[Choice] = []
        for entry in self.to:
            branch, text = entry.name.value, entry.text
            origin = Origin(self.name, f"to.{branch}")
            checked = check(text.value, scope, wants=Scalar.BOOLEAN, origin=origin)
            report.faults(checked.faults, text.line, box=self.name, column=branch)
            if checked.expression is not None:
                to.append(Choice(BoxName(branch), checked.expression))
        key = key_or(self.header, facts.columns, report, ())
        unreadable = refuse_unreadable(facts, self.header, report)
        if unreadable or key is None or len(to) < len(self.to):
            return None
        return Route(
            name=self.name,
            input=facts.name,
            to=tuple(to),
            otherwise=BoxName(self.otherwise.value) if self.otherwise else None,
            columns=(*facts.columns, Column(BRANCH, Scalar.STRING, nullable=False)),
            event_time_column=facts.event_time_column,
            key=key,
        )


def read(name: BoxName, fields: Fields, _defaults: Defaults) -> RouteDraft | None:
    """Read a route from its YAML."""
    header = read_header(name, fields)
    stream = fields.text(Route.kind, required=True)
    to = _read_conditions(fields)
    otherwise = fields.text("otherwise")
    if to is None or not _distinct(fields, to, otherwise):
        return None
    return RouteDraft(header, stream, to, otherwise) if stream else None


def branch_reads(_box: Branch, _stream: StreamName) -> frozenset[str]:
    """The branch column of the route."""
    return frozenset({BRANCH})


def _read_conditions(fields: Fields) -> tuple[Entry, ...] | None:
    fields.required("to")
    node = fields.mapping("to")
    if node is None:
        return None
    if not node.entries:
        fields.problem(f"to of {fields.what} names no stream", node.line)
        return None
    entries: list[Entry] = []
    for key, value in node.entries:
        text = fields.as_text(value, f"to.{key.text} of {fields.what}")
        if text is not None:
            entries.append(Entry(Text(key.text, key.line), text))
    return tuple(entries) if len(entries) == len(node.entries) else None


def _distinct(fields: Fields, to: Sequence[Entry], otherwise: Text | None) -> bool:
    names = [entry.name.value for entry in to]
    if otherwise is not None and otherwise.value in names:
        fields.problem(
            f"otherwise of {fields.what} is {otherwise.value}, which to has already",
            otherwise.line,
            hint="leave otherwise out, and what no condition takes is dropped",
        )
        return False
    return True
