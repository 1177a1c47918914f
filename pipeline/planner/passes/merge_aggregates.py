"""Pass: merge two aggregates over the same rows, windows and groups that are joined.

    average_speed  = aggregate sightings by road, segment compute speed
    traffic_volume = aggregate sightings by road, segment compute cars
    tolls          = join average_speed, traffic_volume on road, segment, window_end

becomes

    tolls_windows  = aggregate sightings by road, segment compute speed, cars
    tolls          = map tolls_windows

Correctness: both aggregates read the same rows, so a (window, group) exists in both or in neither,
and the join pairs each with exactly its counterpart. A null in a group column matches nothing in a
join, so rows with one are filtered out before the merged aggregate. The two aggregates may have no
other reader: a published average must be the one that the toll was computed from, also when one of
them rejected a late record and the other did not.

Changed: a record that one aggregate cannot evaluate becomes one dead letter, and counts in neither
result. The merge saves the join's state, two topics and the delay of a hop.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import chain

from pipeline.ids import StreamName
from pipeline.names import stream_of_box
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.windows import WINDOW_END, WINDOW_START
from pipeline.network.model import Box, ColumnRef, Computed, Expression, Network
from pipeline.network.types import Scalar
from pipeline.planner.draft import (
    Draft,
    event_time_column,
    key_columns,
    private_to,
    unused_name,
)
from pipeline.planner.rename_columns import rename, without_sides

_WINDOW_PAIRS = frozenset({(WINDOW_START, WINDOW_START), (WINDOW_END, WINDOW_END)})


@dataclass(frozen=True, slots=True)
class _Match:
    """A join that can be replaced; `groups` maps the right group columns to the left ones."""

    join: Join
    left: Aggregate
    right: Aggregate
    groups: Mapping[str, str]


def merge_aggregates(draft: Draft) -> Draft:
    """Replace each join of two aggregates of the same rows by one aggregate and a map."""
    while (match := _find(draft.network)) is not None:
        draft = _merge(draft, match)
    return draft


def _find(network: Network) -> _Match | None:
    streams = network.by_name()
    for join in network.boxes:
        if not isinstance(join, Join) or join.how is not How.INNER:
            continue
        left, right = streams[join.left], streams[join.right]
        if not isinstance(left, Aggregate) or not isinstance(right, Aggregate) or left == right:
            continue
        if (left.input, left.window) != (right.input, right.window):
            continue
        if not (private_to(network, left, join) and private_to(network, right, join)):
            continue
        groups = _same_groups(left, right)
        if groups is not None and _pairs_counterparts(join, left, groups):
            return _Match(join, left, right, groups)
    return None


def _same_groups(left: Aggregate, right: Aggregate) -> Mapping[str, str] | None:
    """Right group column → left group column with the same expression; None if they differ."""
    ours = {computed.expression.sql: computed.name for computed in left.by}
    theirs = {computed.expression.sql: computed.name for computed in right.by}
    repeated = len(ours) != len(left.by) or len(theirs) != len(right.by)
    if repeated or ours.keys() != theirs.keys():
        return None
    return {theirs[sql]: ours[sql] for sql in theirs}


def _pairs_counterparts(join: Join, left: Aggregate, groups: Mapping[str, str]) -> bool:
    """Whether the join pairs every window and group with its counterpart and nothing else."""
    pairs = frozenset(join.on)
    if pairs - _WINDOW_PAIRS != {(ours, theirs) for theirs, ours in groups.items()}:
        return False
    lower, upper = join.bound.lower_ms, join.bound.upper_ms
    if not lower <= 0 <= upper:
        return False
    if pairs & _WINDOW_PAIRS:
        return True
    apart = 0 if isinstance(left.window, SessionWindow) else left.window.slide_ms
    return -apart < lower and upper < apart


def _merge(draft: Draft, match: _Match) -> Draft:
    network = draft.network
    join, left, right = match.join, match.left, match.right
    keyed = _filter_of_null_groups(network, match)
    merged, right_names = _one_aggregate(network, match)
    if not join.key:
        merged = replace(merged, key=())
    if keyed is not None:
        merged = replace(merged, input=stream_of_box(keyed.name))
    selected = Map(
        name=join.name,
        input=stream_of_box(merged.name),
        select=tuple(
            Computed(computed.name, _unsided(computed.expression, right_names))
            for computed in join.select
        ),
        columns=join.columns,
        event_time_column=join.event_time_column,
        key=join.key,
    )
    new: tuple[Box, ...] = (merged, selected) if keyed is None else (keyed, merged, selected)
    replaced: dict[str, tuple[Box, ...]] = {left.name: (), right.name: (), join.name: new}
    boxes = tuple(chain.from_iterable(replaced.get(box.name, (box,)) for box in network.boxes))
    return draft.with_boxes(boxes).noting(
        f"{left.name} and {right.name} are computed together as {merged.name}: the same rows, "
        f"windows and groups, and only {join.name} reads them"
    )


def _unsided(expression: Expression, right_names: Mapping[str, str]) -> Expression:
    """A `select` expression of the join over the columns of the merged aggregate."""
    names = {
        column: ColumnRef(
            right_names.get(column.name, column.name) if column.side == "right" else column.name
        )
        for column in expression.columns
    }
    return replace(rename(expression, names), text=without_sides(expression.text, right_names))


def _one_aggregate(network: Network, match: _Match) -> tuple[Aggregate, Mapping[str, str]]:
    """Both aggregates in one, and its names for the right one's columns if they differ."""
    left, right = match.left, match.right
    taken = {name.casefold() for name in _names_inside(left)}
    kept = {a.call: a.name for a in left.aggregations}
    names: dict[str, str] = dict(match.groups)
    aggregations = list(left.aggregations)
    for aggregation in right.aggregations:
        if aggregation.call in kept:
            names[aggregation.name] = kept[aggregation.call]
            continue
        names[aggregation.name] = _free(aggregation.name, taken)
        aggregations.append(replace(aggregation, name=names[aggregation.name]))
    inside = {ColumnRef(old): ColumnRef(new) for old, new in names.items()}
    columns = {column.name: column for column in right.columns}
    results = {computed.name: _free(computed.name, taken) for computed in right.compute}
    merged = replace(
        left,
        name=unused_name(network, f"{match.join.name}_windows"),
        aggregations=tuple(aggregations),
        compute=(
            *left.compute,
            *(Computed(results[c.name], rename(c.expression, inside)) for c in right.compute),
        ),
        columns=(
            *left.columns,
            *(replace(columns[old], name=new) for old, new in results.items()),
        ),
    )
    return merged, {**match.groups, **results}


def _names_inside(aggregate: Aggregate) -> tuple[str, ...]:
    return (
        *(column.name for column in aggregate.columns),
        *(aggregation.name for aggregation in aggregate.aggregations),
    )


def _free(wish: str, taken: set[str]) -> str:
    """The wish, with a number if taken; adds it to `taken`. Spark ignores case in names."""
    name, count = wish, 2
    while name.casefold() in taken:
        name, count = f"{wish}_{count}", count + 1
    taken.add(name.casefold())
    return name


def _filter_of_null_groups(network: Network, match: _Match) -> Filter | None:
    """Keeps the rows without null group columns; None if the columns are never null.

    A row whose group cannot be evaluated passes, and fails in the aggregate.
    """
    groups = tuple(c.expression for c in match.left.by if c.expression.nullable)
    if not groups:
        return None
    source = network.by_name()[match.left.input]
    failures = tuple(f"({group.failed})" for group in groups if group.failed is not None)
    present = " AND ".join(f"({group.sql}) IS NOT NULL" for group in groups)
    return Filter(
        name=unused_name(network, f"{match.join.name}_keyed"),
        input=StreamName(match.left.input),
        where=Expression(
            text=" AND ".join(f"{group.text} IS NOT NULL" for group in groups),
            sql=" OR ".join((*failures, f"({present})")) if failures else present,
            failed=None,
            type=Scalar.BOOLEAN,
            nullable=False,
            columns=frozenset(chain.from_iterable(group.columns for group in groups)),
        ),
        columns=source.columns,
        event_time_column=event_time_column(source),
        key=key_columns(source),
    )
