"""What a network computes from given rows, box by box, in the plainest way.

Only for the expressions that `networks.py` and `generated.py` write: columns, `+`, `-`, `>`, `=`,
`AND` and `IS NOT NULL`. Event times are whole numbers.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.network.aggregates import Aggregation
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.python import Python
from pipeline.network.boxes.route import BRANCH, Branch, Route
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.sides import How, Pair
from pipeline.network.boxes.top import Top
from pipeline.network.boxes.traits import traits
from pipeline.network.boxes.union import Union
from pipeline.network.boxes.windows import Window
from pipeline.network.model import Box, Expression
from tests.unit.boundaries.made_sessions import sessions_of
from tests.unit.boundaries.made_windows import ends_over
from tests.unit.planner.aggregating import Seen, aggregated

Value = int | float | str | bool | tuple["Value", ...] | None
Group = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row, its event time and its key: any key of an external record, or key columns."""

    at: int
    values: Mapping[str, Value]
    key: Hashable = None

    def __hash__(self) -> int:
        return hash((self.at, self.key, frozenset(self.values.items())))


Placed = tuple[int, Row]
"""A row with its place in its stream, which stands for its position."""


def run(boxes: Iterable[Box], rows: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """All rows of all streams, at the end of the inputs."""
    streams = {name: list(stream) for name, stream in rows.items()}
    for box in boxes:
        streams[box.name] = [_keyed(box, row) for row in _KINDS[box.kind](box, streams)]
    return streams


def _keyed(box: Box, row: Row) -> Row:
    """The row with the box's key; without one a stateless box keeps that of its input."""
    if not box.key:
        alone = isinstance(box, Deduplicate) or not traits(box).stateful
        return row if alone else replace(row, key=None)
    return replace(row, key=tuple(row.values[name] for name in box.key))


def same_rows(one: list[Row], other: list[Row]) -> bool:
    """Whether two streams have the same rows, in any order."""
    return Counter(one) == Counter(other)


def value_of(expression: Expression, **rows: Mapping[str, Value]) -> Value:
    """The value of an expression over `row`, or over `left` and `right`; null for null operands."""
    python = expression.sql.replace(" IS NOT NULL", " is not None").replace(" AND ", " and ")
    python = re.sub(r"`(left|right)`\.`(\w+)`", r"\1['\2']", python.replace(" = ", " == "))
    python = re.sub(r"`(\w+)`", r"row['\1']", python)
    try:
        result: Value = eval(python, {"__builtins__": {}}, dict(rows))  # noqa: S307 - our own text
    except TypeError:
        return None
    return result


Streams = Mapping[str, list[Row]]


def _filter(box: Filter, streams: Streams) -> Iterator[Row]:
    for row in streams[box.input]:
        if value_of(box.where, row=row.values) is True:
            yield row


def _map(box: Map, streams: Streams) -> Iterator[Row]:
    for row in streams[box.input]:
        new = {c.name: value_of(c.expression, row=row.values) for c in box.select}
        yield Row(row.at, new, row.key)


def _flat_map(box: FlatMap, streams: Streams) -> Iterator[Row]:
    for row in streams[box.input]:
        array = value_of(box.each.expression, row=row.values)
        for at, element in enumerate(array if isinstance(array, tuple) else ()):
            inside = {**row.values, box.each.name: element} | ({box.at: at} if box.at else {})
            new = {c.name: value_of(c.expression, row=inside) for c in box.select}
            yield Row(row.at, new, row.key)


def _route(box: Route, streams: Streams) -> Iterator[Row]:
    for row in streams[box.input]:
        true = (c.branch for c in box.to if value_of(c.where, row=row.values) is True)
        branch = next(true, box.otherwise)
        if branch is not None:
            yield replace(row, values={**row.values, BRANCH: branch})


def _branch(box: Branch, streams: Streams) -> Iterator[Row]:
    for row in streams[box.input]:
        if row.values[BRANCH] == box.name:
            yield replace(row, values={c.name: row.values[c.name] for c in box.columns})


def _python(box: Python, streams: Streams) -> Iterator[Row]:
    """The function of `networks.py`: twice the first number of each row that has one."""
    for row in streams[box.input]:
        number = next((v for v in row.values.values() if isinstance(v, int)), None)
        if number is not None:
            yield Row(row.at, {box.columns[0].name: 2 * number}, row.key)


def _union(box: Union, streams: Streams) -> Iterator[Row]:
    for stream in box.inputs:
        for row in streams[stream]:
            values = {name.lower(): value for name, value in row.values.items()}
            yield replace(row, values={c.name: values[c.name.lower()] for c in box.columns})


def _groups(box: Aggregate | Top, rows: Iterable[Placed]) -> Iterator[tuple[Row, list[Placed]]]:
    """For each window and group a row of its columns, and its members."""
    groups: dict[Group, list[Placed]] = {}
    for place, row in rows:
        group = tuple(value_of(c.expression, row=row.values) for c in box.by)
        groups.setdefault(group, []).append((place, row))
    for group, members, start, end in _windows(box.window, groups):
        values: dict[str, Value] = dict(zip((c.name for c in box.by), group, strict=True))
        values |= {"window_start": start, "window_end": end}
        yield Row(end, values), members


def _top(box: Top, streams: Streams) -> Iterator[Row]:
    """The best by numbers; values of another type count as missing."""
    rows = dict(enumerate(streams[box.input]))
    found = {place: value_of(box.ordered_by, row=row.values) for place, row in rows.items()}
    order = {at: (v, rows[at].at, at) for at, v in found.items() if isinstance(v, int)}
    for named, members in _groups(box, ((at, rows[at]) for at in order)):
        best = sorted((at for at, _ in members), key=order.__getitem__, reverse=box.highest)
        for rank, at in enumerate(best[: box.rows], 1):
            selected = {c.name: value_of(c.expression, row=rows[at].values) for c in box.select}
            yield replace(named, values={**named.values, "rank": rank, **selected})


def _aggregate(box: Aggregate, streams: Streams) -> Iterator[Row]:
    for named, members in _groups(box, enumerate(streams[box.input])):
        values = dict(named.values)
        inside = values | {a.name: _aggregation(a, members) for a in box.aggregations}
        values |= {c.name: value_of(c.expression, row=inside) for c in box.compute}
        yield replace(named, values=values)


def _windows(
    window: Window | SessionWindow, groups: Mapping[Group, list[Placed]]
) -> Iterator[tuple[Group, list[Placed], int, int]]:
    """The rows of each group and window or session, with its start and end."""
    for group, rows in groups.items():
        if isinstance(window, SessionWindow):
            for times in sessions_of(window, (row.at for _, row in rows)):
                members = [(place, row) for place, row in rows if times[0] <= row.at <= times[-1]]
                yield group, members, times[0], times[-1] + window.gap_ms
        else:
            for end in sorted({end for _, row in rows for end in ends_over(window, row.at)}):
                members = [(place, row) for place, row in rows if end in ends_over(window, row.at)]
                yield group, members, end - window.size_ms, end


def _aggregation(aggregation: Aggregation, rows: list[Placed]) -> Value:
    assert aggregation.argument is not None
    argument = aggregation.argument
    values = ((row.at, place, value_of(argument, row=row.values)) for place, row in rows)
    seen = [Seen((at, place), v if isinstance(v, int | float) else None) for at, place, v in values]
    result: Value = aggregated(aggregation.function, seen, aggregation.parameters)
    return result


def _join(box: Join, streams: Streams) -> Iterator[Row]:
    left, right = streams[box.left], streams[box.right]
    found = [(one, other) for one in left for other in right if _are_pair(box, one, other)]
    results: list[tuple[Row | None, Row | None]] = [*found]
    if box.how is not How.INNER:
        results += [(one, None) for one in left if not any(one is pair[0] for pair in found)]
    if box.how is How.FULL:
        results += [(None, other) for other in right if not any(other is p[1] for p in found)]
    for pair in results:
        sides = dict(zip(("left", "right"), (_values(row) for row in pair), strict=True))
        new = {c.name: value_of(c.expression, **sides) for c in box.select}
        yield Row(max(row.at for row in pair if row is not None), new)


def _as_of(box: AsOf, streams: Streams) -> Iterator[Row]:
    """A row's values are used in place of its position, which a plan may change."""
    versions = sorted(streams[box.right], key=_in_order)
    for row in streams[box.left]:
        fitting = (v for v in versions if _are_equal(box.on, row, v))
        before = [v for v in fitting if 0 <= row.at - v.at <= box.within_ms]
        if before or box.how is How.LEFT:
            right = before[-1] if before else None
            sides = {"left": row.values, "right": _values(right)}
            yield Row(row.at, {c.name: value_of(c.expression, **sides) for c in box.select})


def _are_pair(box: Join, one: Row, other: Row) -> bool:
    near = box.bound.lower_ms <= one.at - other.at <= box.bound.upper_ms
    return near and _are_equal(box.on, one, other)


def _are_equal(on: Iterable[Pair], one: Row, other: Row) -> bool:
    columns = [(one.values[ours], other.values[theirs]) for ours, theirs in on]
    return all(ours is not None and ours == theirs for ours, theirs in columns)


def _values(row: Row | None) -> Mapping[str, Value]:
    """The columns of a side, all null where it is missing."""
    return defaultdict(lambda: None) if row is None else row.values


def _deduplicate(box: Deduplicate, streams: Streams) -> Iterator[Row]:
    """Record by record; a row's values are in place of its position, which a plan may change."""
    last: dict[tuple[Value, ...], int] = {}
    for row in sorted(streams[box.input], key=_in_order):
        key = tuple(row.values[name] for name in box.by)
        if key not in last or None in key or row.at - last[key] > box.within_ms:
            yield row
        last[key] = row.at


def _in_order(row: Row) -> tuple[int, str, str]:
    return row.at, repr(sorted(row.values.items())), repr(row.key)


_KINDS: Mapping[str, Callable[[Any, Streams], Iterator[Row]]] = {
    "aggregate": _aggregate,
    "as_of": _as_of,
    "branch": _branch,
    "deduplicate": _deduplicate,
    "filter": _filter,
    "flat_map": _flat_map,
    "join": _join,
    "map": _map,
    "python": _python,
    "route": _route,
    "top": _top,
    "union": _union,
}
"""What a kind of box makes of the streams that it reads."""
