"""join: pairs of rows of two streams with equal keys whose event times lie close together.

A left join has the rows of its left side without a partner, too, and a full join those of both.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum

from pipeline.ids import BoxName, StreamName
from pipeline.nearest import nearest_first
from pipeline.network import sql_text
from pipeline.network.boxes.common import (
    Defaults,
    Entry,
    Headed,
    StreamFacts,
    columns_of,
    compute,
    input_column,
    key_or,
    read_entries,
    read_header,
    refuse_unreadable,
)
from pipeline.network.boxes.time_bound import Limits, limits_of, read_within
from pipeline.network.coercion import is_integral, is_orderable
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.logic import first_given
from pipeline.network.model import ColumnRef, Computed
from pipeline.network.scope import Scope, Source
from pipeline.network.term import FaultError, Term
from pipeline.network.types import Columns
from pipeline.network.yaml_reader import YamlMap

Pair = tuple[str, str]
"""A column of the left side and one of the right."""


class How(Enum):
    """Which rows without a partner a join has as well."""

    INNER = "inner"
    """None."""
    LEFT = "left"
    FULL = "full"
    """Those of both sides."""


@dataclass(frozen=True, slots=True)
class TimeBound:
    """`lower_ms <= left event time - right event time <= upper_ms`, both ends included."""

    lower_ms: int
    upper_ms: int


@dataclass(frozen=True, slots=True)
class Join:
    """`{join: {left: A, right: B, on: [COLUMN, …], within: BOUND, how: HOW}, select: {…}}`.

    `on` holds pairs (left column, right column) compared with `=`; a null key matches nothing.
    `select` expressions read `left`.`x` and `right`.`x`, which are null where that side is missing.
    The event time of a pair is the later of the two, that of a row without a partner its own; the
    key is what equals the `on` columns, as far as it is selected, unless declared.
    """

    name: BoxName
    left: StreamName
    right: StreamName
    on: tuple[Pair, ...]
    bound: TimeBound
    select: tuple[Computed, ...]
    columns: Columns
    event_time_column: str | None
    key: tuple[str, ...] = ()
    how: How = How.INNER

    kind = "join"
    stateful = True

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """Left, then right."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class JoinDraft(Headed):
    """A join as written. `within` is None where it is missing; `broken` where it was reported."""

    left: Text
    right: Text
    on: tuple[tuple[Text, Text], ...]
    within: Limits | Text | None
    select: tuple[Entry, ...] | None
    how: How
    broken: bool

    @property
    def inputs(self) -> tuple[Text, ...]:
        """Left, then right."""
        return (self.left, self.right)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The bound, where it is an expression, and the columns."""
        within = self.within
        bound = [Entry(Text("within", within.line), within)] if isinstance(within, Text) else []
        return (*bound, *(self.select or ()))

    def build(self, inputs: Sequence[StreamFacts], report: Report) -> Join | None:
        """Check `on`, `within` and `select`, and work out columns, event time and key."""
        left, right = inputs
        on = self._pairs(left, right, report)
        sound = left.sound and right.sound
        bound = self._bound(left, right, on, report) if sound else None
        sides = (
            Source(left.columns, "left", left.unreadable, optional=self.how is How.FULL),
            Source(right.columns, "right", right.unreadable, optional=self.how is not How.INNER),
        )
        matched = {pair: _matched(pair, sides, self.how) for pair in on or ()}
        entries = self.select or self._all_columns(left, right, on, report)
        scope = Scope(sides, {a.lower(): matched[a, b] for a, b in on or () if _same_name(a, b)})
        select = compute(entries, scope, report, self.name, "select") if entries else None
        if on is None or bound is None or not select or self.broken:
            return None
        select = tuple(_one_side_is_there(computed, matched) for computed in select)
        columns = columns_of(select)
        times = (left.event_time_column, right.event_time_column)
        key = key_or(self.header, columns, report, _default_key(select, matched, self.how))
        if key is None:
            return None
        return Join(
            name=self.name,
            left=left.name,
            right=right.name,
            on=on,
            bound=bound,
            select=select,
            columns=columns,
            event_time_column=_event_time(select, bound, times, matched, self.how),
            key=key,
            how=self.how,
        )

    def _pairs(
        self, left: StreamFacts, right: StreamFacts, report: Report
    ) -> tuple[tuple[str, str], ...] | None:
        pairs: list[tuple[str, str]] = []
        for one, other in self.on:
            a = input_column(left, one, "on", report, self.name)
            b = input_column(right, other, "on", report, self.name)
            if a is None or b is None:
                continue
            if a.type != b.type and not (is_integral(a.type) and is_integral(b.type)):
                report.add(
                    f"on compares {left.name}.{a.name}, {a.type}, with {right.name}.{b.name},"
                    f" {b.type}",
                    one.line,
                    box=self.name,
                    column=a.name,
                    hint="CAST one of them in a map box",
                )
            elif not is_orderable(a.type):
                message = f"on compares {a.name}, but values of type {a.type} cannot be compared"
                report.add(message, one.line, box=self.name, column=a.name)
            else:
                pairs.append((a.name, b.name))
        return tuple(pairs) if pairs and len(pairs) == len(self.on) else None

    def _bound(
        self,
        left: StreamFacts,
        right: StreamFacts,
        on: Sequence[tuple[str, str]] | None,
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
            if on is not None and not self.broken:
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
        return TimeBound(lower, upper)

    def _all_columns(
        self,
        left: StreamFacts,
        right: StreamFacts,
        on: Sequence[tuple[str, str]] | None,
        report: Report,
    ) -> tuple[Entry, ...] | None:
        """Every column of both sides, those of `on` once; two with one name need a `select`.

        Those of `on` have the names of the left side.
        """
        if on is None or self.select is not None or self.broken:
            return None
        refused = [refuse_unreadable(facts, self.header, report) for facts in (left, right)]
        if any(refused):
            return None
        joined = {b.lower() for _, b in on}
        right_names = [c.name for c in right.columns if c.name.lower() not in joined]
        left_names = [c.name for c in left.columns]
        taken = {name.lower() for name in left_names}
        clashes = tuple(name for name in right_names if name.lower() in taken)
        if clashes:
            report.add(
                f"both sides have {', '.join(clashes)}",
                self.line,
                box=self.name,
                hint=f"say what you want: select: {{{clashes[0]}: left.{clashes[0]}, …}}",
            )
            return None
        wanted = [(name, f"left.{sql_text.quoted(name)}") for name in left_names]
        wanted += [(name, f"right.{sql_text.quoted(name)}") for name in right_names]
        if self.how is How.FULL:
            either = {
                a: f"coalesce(left.{sql_text.quoted(a)}, right.{sql_text.quoted(b)})"
                for a, b in reversed(on)
            }
            wanted = [(name, either.get(name, text)) for name, text in wanted]
        return tuple(Entry(Text(name, self.line), Text(text, self.line)) for name, text in wanted)


def _same_name(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _matched(pair: Pair, sides: Sequence[Source], how: How) -> Term:
    """What the two columns of a pair of `on` are in every result: that of a side it has."""
    present = Scope(tuple(replace(side, optional=False) for side in sides))
    ours, theirs = (present.resolve((s.side, n)) for s, n in zip(sides, pair, strict=True))
    if how is not How.FULL:
        return ours
    return replace(first_given((ours, theirs)), nullable=ours.nullable or theirs.nullable)


def _one_side_is_there(computed: Computed, matched: Mapping[Pair, Term]) -> Computed:
    """What an `on` column is is null only where that column is, though either side may lack."""
    for term in matched.values():
        if computed.expression.sql == term.sql:
            return replace(
                computed, expression=replace(computed.expression, nullable=term.nullable)
            )
    return computed


def _default_key(
    select: Sequence[Computed], matched: Mapping[Pair, Term], how: How
) -> tuple[str, ...]:
    names: list[str | None] = []
    for (_, right), term in matched.items():
        same = {term.sql} | (
            {sql_text.column(ColumnRef(right, "right"))} if how is How.INNER else set()
        )
        names.append(_repeating(select, same))
    return tuple(name for name in names if name is not None)


def _event_time(
    select: Sequence[Computed],
    bound: TimeBound,
    times: tuple[str | None, str | None],
    matched: Mapping[Pair, Term],
    how: How,
) -> str | None:
    """The output column that is a result's event time, where bound and kind say which it is."""
    left, right = times
    later: set[str] = set()
    if left is not None and right is not None and how is How.FULL:
        same = matched.get((left, right)) if bound.lower_ms == bound.upper_ms == 0 else None
        later |= {same.sql} if same else set()
    if left is not None and how is not How.FULL and bound.lower_ms >= 0:
        later.add(sql_text.column(ColumnRef(left, "left")))
    if right is not None and how is How.INNER and bound.upper_ms <= 0:
        later.add(sql_text.column(ColumnRef(right, "right")))
    return _repeating(select, later)


def _repeating(select: Sequence[Computed], sqls: AbstractSet[str]) -> str | None:
    """The first output column that is just one of some columns."""
    return next((c.name for c in select if c.expression.sql in sqls), None)


def _read_on(fields: Fields) -> tuple[tuple[Text, Text], ...] | None:
    node = fields.node("on")
    if node is None:
        fields.required("on")
        return None
    if isinstance(node, YamlMap):
        pairs: list[tuple[Text, Text]] = []
        for key, value in node.entries:
            text = fields.as_text(value, f"on of {fields.what}")
            if text is None:
                return None
            pairs.append((Text(key.text, key.line), text))
    else:
        names = fields.as_texts(node, f"on of {fields.what}")
        if names is None:
            return None
        pairs = [(name, name) for name in names]
    if not pairs:
        fields.problem(f"on of {fields.what} names no column", node.line)
    return tuple(pairs) or None


def _read_how(fields: Fields) -> How | None:
    text = fields.text("how")
    if text is None:
        return None if fields.has("how") else How.INNER
    found = next((how for how in How if how.value == text.value), None)
    if found is None:
        swap = text.value == "right"
        fields.problem(
            f"there is no join with how: {text.value}",
            text.line,
            hint="write how: left, and let left and right change places" if swap else "",
            choices=() if swap else nearest_first(text.value, tuple(how.value for how in How)),
        )
    return found


def read(name: BoxName, fields: Fields, defaults: Defaults) -> JoinDraft | None:
    """Take a join out of its YAML."""
    header = read_header(name, fields)
    select = read_entries(fields, "select", plain_list=True)
    select_broken = fields.has("select") and not select
    if select is not None and not select:
        fields.problem(f"select of {fields.what} names no column", fields.line_of("select"))
    node = fields.mapping(Join.kind)
    if node is None:
        return None
    inner = Fields(node, f"join of {fields.what}", fields.report, fields.box)
    left, right = inner.text("left", required=True), inner.text("right", required=True)
    on = _read_on(inner)
    within = read_within(inner, defaults)
    how = _read_how(inner)
    inner.finish()
    if left is None or right is None:
        return None
    bad = select_broken or on is None or how is None or (inner.has("within") and within is None)
    return JoinDraft(
        header, left, right, on or (), within, select or None, how or How.INNER, broken=bad
    )
