"""join: pairs of rows of two streams with equal keys and close event times.

A left join also emits the left rows without a partner, a full join those of both sides.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline import durations
from pipeline.ids import BoxName
from pipeline.network import sql_text
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    StreamFacts,
    columns_of,
    key_or,
)
from pipeline.network.boxes.shape import Joined, Shape, Sources
from pipeline.network.boxes.sides import (
    How,
    Pair,
    Selected,
    SidesDraft,
    TwoInputs,
    read_sides,
    repeating,
)
from pipeline.network.boxes.time_bound import Limits, limits_of, read_within
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.model import ColumnRef, Computed
from pipeline.network.term import FaultError


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`lower_ms <= left event time - right event time <= upper_ms`, both ends included."""

    lower_ms: int
    upper_ms: int


@dataclass(frozen=True, slots=True)
class Join(TwoInputs):
    """`{join: {left: A, right: B, on: [COLUMN, …], within: BOUND, how: HOW}, select: {…}}`.

    `on` contains pairs (left column, right column) compared with `=`; a null key matches nothing.
    `select` expressions read `left`.`x` and `right`.`x`, which are null where that side is missing.
    The event time of a pair is the later of the two, that of a row without a partner its own; the
    key is the column equal to the `on` columns, as far as it is selected, unless declared.
    """

    bound: TimeBound
    select: tuple[Computed, ...]
    how: How = How.INNER

    kind = "join"


@dataclass(frozen=True, slots=True)
class JoinDraft(SidesDraft):
    """A join as written. `within` is None if missing."""

    within: Limits | Text | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The bound, where it is an expression, and the columns."""
        within = self.within
        bound = [Entry(Text("within", within.line), within)] if isinstance(within, Text) else []
        return (*bound, *(self.sides.select or ()))

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Join | None:
        """Check `on`, `within` and `select`; derive columns, event time and key."""
        left, right = inputs
        on = self.sides.pairs(left, right, report)
        sound = left.sound and right.sound
        bound = self._bound(left, right, on, report) if sound else None
        selected = self.sides.selected(left, right, on, report)
        if on is None or bound is None or selected is None or self.sides.broken:
            return None
        columns = columns_of(selected.select)
        times = (left.event_time_column, right.event_time_column)
        key = key_or(self.header, columns, report, selected.key)
        if key is None:
            return None
        return Join(
            name=self.name,
            left=left.name,
            right=right.name,
            on=on,
            bound=bound,
            select=selected.select,
            columns=columns,
            event_time_column=_event_time(selected, bound, times, self.sides.how),
            key=key,
            how=self.sides.how,
        )

    def _bound(
        self,
        left: StreamFacts,
        right: StreamFacts,
        on: Sequence[Pair] | None,
        report: Report,
    ) -> TimeBound | None:
        limits, line = self.within, self.line
        if isinstance(limits, Text):
            line = limits.line
            try:
                limits = limits_of(limits.value, left, right)
            except FaultError as error:
                report.faults((error.fault,), line, box=self.name, column="within")
                return None
        times = (left.event_time_column, right.event_time_column)
        if on is not None and None not in times and times in on:
            limits = Limits(0, 0) if limits is None else limits.both(Limits(0, 0))
        if limits is None:
            if on is not None and not self.sides.broken:
                self._no_within(times, report)
            return None
        return self._closed(limits, line, report)

    def _no_within(self, times: tuple[str | None, str | None], report: Report) -> None:
        names = " and ".join(dict.fromkeys(time for time in times if time is not None))
        equal = "" if None in times else f", or compare {names} in on"
        report.add(
            "a join needs within: how far apart the event times of a pair may lie",
            self.line,
            box=self.name,
            hint=f"write within: 5m{equal}",
        )

    def _closed(self, limits: Limits, line: int, report: Report) -> TimeBound | None:
        lower, upper = limits.lower, limits.upper
        if lower is None or upper is None:
            report.add(
                f"within has no {'lower' if lower is None else 'upper'} limit, so rows would have"
                " to be kept for ever",
                line,
                box=self.name,
                column="within",
                hint="limit both sides, as BETWEEN does",
            )
            return None
        if lower > upper:
            report.add("no two event times can satisfy within", line, box=self.name)
            return None
        if lower < -durations.MAX_MS or upper > durations.MAX_MS:
            most = durations.format(durations.MAX_MS)
            message = f"within lets event times lie further apart than {most}"
            report.add(message, line, box=self.name, column="within")
            return None
        return TimeBound(lower, upper)


def _event_time(
    selected: Selected, bound: TimeBound, times: tuple[str | None, str | None], how: How
) -> str | None:
    """The output column that equals a result's event time, if bound and kind determine one."""
    left, right = times
    later: set[str] = set()
    if left is not None and right is not None and how is How.FULL:
        same = selected.matched.get((left, right)) if bound == TimeBound(0, 0) else None
        later |= {same.sql} if same else set()
    if left is not None and how is not How.FULL and bound.lower_ms >= 0:
        later.add(sql_text.column(ColumnRef(left, "left")))
    if right is not None and how is How.INNER and bound.upper_ms <= 0:
        later.add(sql_text.column(ColumnRef(right, "right")))
    return repeating(selected.select, later)


def read(name: BoxName, fields: Fields, defaults: Defaults) -> JoinDraft | None:
    """Read a join from its YAML."""
    found = read_sides(name, fields, Join.kind, tuple(How))
    if found is None:
        return None
    inner, sides = found
    within = read_within(inner, defaults)
    inner.finish()
    if sides is None:
        return None
    broken = sides.broken or (inner.has("within") and within is None)
    return JoinDraft(sides.header, replace(sides, broken=broken), within)


def shape(box: Join, _sources: Sources) -> Shape:
    """A left row at t waits for right rows up to t - lower, a right one for left rows to t + upper.

    So a watermark of w has released the left rows below w + lower, and the right ones below w -
    upper. A row still in the state may have partners from upper - lower before itself on.
    """
    lower, upper = box.bound.lower_ms, box.bound.upper_ms
    left, right = 1 - lower, 1 + upper
    match box.how:
        case How.INNER:
            return Joined(max(0, -lower, upper))
        case How.LEFT:
            behind = max(0, left)
        case How.FULL:
            behind = max(0, left, right)
    return Joined(max(0, -lower, upper, upper - lower), behind, waits=True)
