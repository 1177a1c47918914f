"""as_of: join of each row of a stream with the version of a table at the row's event time.

A table is a stream whose rows are versions: each is valid for its key from its event time until
that of the next version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline.ids import BoxName
from pipeline.network import sql_text
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    StreamFacts,
    columns_of,
    key_or,
    window_size,
)
from pipeline.network.boxes.shape import Joined, Shape, Sources
from pipeline.network.boxes.sides import (
    How,
    SidesDraft,
    TwoInputs,
    read_sides,
    repeating,
)
from pipeline.network.fields import Fields, Report
from pipeline.network.model import ColumnRef, Computed

HOWS = (How.INNER, How.LEFT)


@dataclass(frozen=True, slots=True)
class AsOf(TwoInputs):
    """`{as_of: {left: STREAM, right: TABLE, on: [COLUMN, …], within: DURATION, how: HOW}, …}`.

    Each left row matches at most one right row: of those with equal `on` columns whose event time
    is not after its own and at most `within_ms` before, the latest; of equal times the last in the
    log. A null key matches nothing. `select` is that of a join. The event time of a result is that
    of its left row; the key is the column equal to the `on` columns, as far as it is selected,
    unless declared.
    """

    within_ms: int
    select: tuple[Computed, ...]
    how: How = How.INNER

    kind = "as_of"


@dataclass(frozen=True, slots=True)
class AsOfDraft(SidesDraft):
    """A box as written."""

    within_ms: int

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The columns."""
        return self.sides.select or ()

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> AsOf | None:
        """Check `on` and `select`; derive columns, event time and key."""
        left, right = inputs
        on = self.sides.pairs(left, right, report)
        selected = self.sides.selected(left, right, on, report)
        if on is None or selected is None or self.sides.broken:
            return None
        columns = columns_of(selected.select)
        key = key_or(self.header, columns, report, selected.key)
        if key is None:
            return None
        return AsOf(
            name=self.name,
            left=left.name,
            right=right.name,
            on=on,
            within_ms=self.within_ms,
            select=selected.select,
            columns=columns,
            event_time_column=_event_time(selected.select, left.event_time_column),
            key=key,
            how=self.sides.how,
        )


def _event_time(select: Sequence[Computed], left: str | None) -> str | None:
    """The output column that is the left row's event time."""
    return left and repeating(select, {sql_text.column(ColumnRef(left, "left"))})


def read(name: BoxName, fields: Fields, defaults: Defaults) -> AsOfDraft | None:
    """Read the box from its YAML."""
    found = read_sides(name, fields, AsOf.kind, HOWS)
    if found is None:
        return None
    inner, sides = found
    within = inner.text("within")
    if within is None and not inner.has("within"):
        inner.problem(
            f"{inner.what} needs within: how old what the table says may be",
            inner.line,
            hint="write within: 30d; a key of which nothing was said for so long is forgotten",
        )
    within_ms = window_size(inner, "within", within, defaults, low=0)
    inner.finish()
    if sides is None:
        return None
    broken = sides.broken or within_ms is None
    return AsOfDraft(sides.header, replace(sides, broken=broken), within_ms or 0)


def shape(box: AsOf, sources: Sources) -> Shape:
    """A row is released once all versions up to its time are read: no better match can arrive."""
    rows_alone = frozenset(sources["left"] - sources["right"])
    return Joined(box.within_ms, waits=True, passing=rows_alone)
