"""Shared parts of the boxes with two inputs: `left`, `right`, `on`, `select`."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum

from pipeline.ids import BoxName, StreamName
from pipeline.nearest import nearest_first
from pipeline.network import sql_text
from pipeline.network.boxes.common import (
    Draft,
    Entry,
    Header,
    Output,
    StreamFacts,
    are_unique,
    compute,
    input_column,
    read_header,
    read_select,
    refuse_unreadable,
)
from pipeline.network.coercion import is_integral, is_orderable
from pipeline.network.fields import Fields, Report, Text
from pipeline.network.logic import coalesce, difference_hint
from pipeline.network.model import ColumnRef, Computed, expressions
from pipeline.network.scope import SIDES, Scope, Source
from pipeline.network.term import Term
from pipeline.yaml_reader import YamlMap


class How(Enum):
    """Which rows without a partner a join also emits."""

    INNER = "inner"
    """None."""
    LEFT = "left"
    FULL = "full"
    """Those of both sides."""


Pair = tuple[str, str]
"""A column of the left side and one of the right."""


@dataclass(frozen=True, slots=True)
class TwoInputs(Output):
    """Common part of the boxes with two inputs."""

    name: BoxName
    left: StreamName
    right: StreamName
    on: tuple[Pair, ...]

    @property
    def inputs(self) -> tuple[StreamName, ...]:
        """Left, then right."""
        return (self.left, self.right)


@dataclass(frozen=True, slots=True)
class Selected:
    """The computed columns of a box with two inputs.

    Args:
        select: the columns.
        matched: each pair of `on` columns → its value in a result.
        key: the default key columns.
    """

    select: tuple[Computed, ...]
    matched: Mapping[Pair, Term]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """Two sides as written; `broken` if a part of them was reported."""

    header: Header
    left: Text
    right: Text
    on: tuple[tuple[Text, Text], ...]
    select: tuple[Entry, ...] | None
    how: How
    broken: bool

    @property
    def inputs(self) -> tuple[Text, ...]:
        """Left, then right."""
        return (self.left, self.right)

    def pairs(
        self, left: StreamFacts, right: StreamFacts, report: Report
    ) -> tuple[Pair, ...] | None:
        """The pairs of `on` columns, all comparable; None: some are invalid (reported)."""
        pairs: list[Pair] = []
        for one, other in self.on:
            a = input_column(left, one, "on", report, self.header.name)
            b = input_column(right, other, "on", report, self.header.name)
            if a is None or b is None:
                continue
            if a.type != b.type and not (is_integral(a.type) and is_integral(b.type)):
                report.add(
                    f"on compares {left.name}.{a.name}, {a.type}, with {right.name}.{b.name},"
                    f" {b.type}",
                    one.line,
                    box=self.header.name,
                    column=a.name,
                    hint=difference_hint(a.type, b.type, "CAST one of them in a map box"),
                )
            elif not is_orderable(a.type):
                message = f"on compares {a.name}, but values of type {a.type} cannot be compared"
                report.add(message, one.line, box=self.header.name, column=a.name)
            else:
                pairs.append((a.name, b.name))
        written = [_pair_text(one, other) for one, other in self.on]
        once = are_unique(written, "on", report, self.header.name)
        return tuple(pairs) if once and pairs and len(pairs) == len(self.on) else None

    def selected(
        self, left: StreamFacts, right: StreamFacts, on: Sequence[Pair] | None, report: Report
    ) -> Selected | None:
        """Check `select`; None: invalid (reported)."""
        sides = (
            Source(left.columns, "left", left.unreadable, optional=self.how is How.FULL),
            Source(right.columns, "right", right.unreadable, optional=self.how is not How.INNER),
        )
        matched = {pair: _matched(pair, sides, self.how) for pair in on or ()}
        entries = self.select or self._all_columns(left, right, on, report)
        scope = Scope(sides, {a.lower(): matched[a, b] for a, b in on or () if _same_name(a, b)})
        select = compute(entries, scope, report, self.header.name, "select") if entries else None
        if not select:
            return None
        select = tuple(_as_on_column(computed, matched) for computed in select)
        return Selected(select, matched, _default_key(select, matched, self.how))

    def _all_columns(
        self,
        left: StreamFacts,
        right: StreamFacts,
        on: Sequence[Pair] | None,
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
                self.header.line,
                box=self.header.name,
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
        return tuple(
            Entry(Text(name, self.header.line), Text(text, self.header.line))
            for name, text in wanted
        )


@dataclass(frozen=True, slots=True)
class SidesDraft(Draft):
    """A draft that reads two streams."""

    sides: Sides

    @property
    def inputs(self) -> tuple[Text, ...]:
        """Left, then right."""
        return self.sides.inputs


def _pair_text(one: Text, other: Text) -> Text:
    """A pair of `on` columns in messages."""
    same = _same_name(one.value, other.value)
    return one if same else Text(f"{one.value} = {other.value}", one.line)


def _same_name(one: str, other: str) -> bool:
    return one.lower() == other.lower()


def _matched(pair: Pair, sides: Sequence[Source], how: How) -> Term:
    """The value of a pair of `on` columns in a result: from a side that is present."""
    present = Scope(tuple(replace(side, optional=False) for side in sides))
    ours, theirs = (present.resolve((s.side, n)) for s, n in zip(sides, pair, strict=True))
    if how is not How.FULL:
        return ours
    return replace(coalesce((ours, theirs)), nullable=ours.nullable or theirs.nullable)


def _as_on_column(computed: Computed, matched: Mapping[Pair, Term]) -> Computed:
    """A copy of an `on` column that is null only where the column itself is null."""
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
        names.append(repeating(select, same))
    return tuple(dict.fromkeys(name for name in names if name is not None))


def repeating(select: Sequence[Computed], sqls: AbstractSet[str]) -> str | None:
    """The first output column that repeats one of some columns."""
    return next((c.name for c in select if c.expression.sql in sqls), None)


def reads(box: TwoInputs, stream: StreamName) -> frozenset[str]:
    """The columns of a stream used by `on` and `select`; the stream may be both inputs."""
    sides = {side for side, of in zip(SIDES, box.inputs, strict=True) if of == stream}
    selected = (column for e in expressions(box) for column in e.columns)
    named = {column.name for column in selected if column.side in sides}
    pairs = (pair[SIDES.index(side)] for pair in box.on for side in sides)
    return frozenset(named.union(pairs))


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


def _read_how(fields: Fields, kind: str, hows: Sequence[How]) -> How | None:
    text = fields.text("how")
    if text is None:
        return None if fields.has("how") else How.INNER
    found = next((how for how in hows if how.value == text.value), None)
    if found is None:
        swap = text.value == "right"
        fields.problem(
            f"there is no {kind} with how: {text.value}",
            text.line,
            hint="write how: left, and let left and right change places" if swap else "",
            choices=() if swap else nearest_first(text.value, tuple(how.value for how in hows)),
        )
    return found


def read_sides(
    name: BoxName, fields: Fields, kind: str, hows: Sequence[How]
) -> tuple[Fields, Sides | None] | None:
    """Read the sides of such a box from its YAML; None: there are none (reported).

    Returns:
        The fields under the kind's key, for reading the rest and finishing; and the sides, None
        if one is missing (reported).
    """
    header = read_header(name, fields)
    select = read_select(fields)
    broken = fields.has("select") and select is None
    node = fields.mapping(kind)
    if node is None:
        return None
    inner = Fields(node, f"{kind} of {fields.what}", fields.report, fields.box)
    left, right = inner.text("left", required=True), inner.text("right", required=True)
    on, how = _read_on(inner), _read_how(inner, kind, hows)
    if left is None or right is None:
        return inner, None
    broken = broken or on is None or how is None
    return inner, Sides(header, left, right, on or (), select, how or How.INNER, broken)
