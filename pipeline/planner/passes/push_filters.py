"""Pass: push filters towards the sources, so that the state is smaller.

    pairs = join moving, tolls select car: left.car, toll: right.toll
    dear  = filter pairs where toll > 5

becomes

    dear_right = filter tolls where toll > 5
    dear       = join moving, dear_right select car: left.car, toll: right.toll

The box below takes the filter's name, so that readers of the filter remain unchanged. A filter
moves below

- a join, if it reads only columns that the join repeats from one side, which no row of the join
  lacks;
- an aggregate or a top, if it reads only group columns that repeat a column of the input;
- a map, if it reads only columns that the map repeats, and can move further from there.

It stays if its input has another reader, and if its condition can fail: below a join it would be
evaluated for rows without a partner, and send them to the dead letters.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain

from pipeline.ids import StreamName
from pipeline.names import stream_of_box
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.sides import How
from pipeline.network.boxes.top import Top
from pipeline.network.model import Box, ColumnRef, Computed, Network
from pipeline.planner.draft import (
    Draft,
    event_time_column,
    key_columns,
    private_to,
    unused_name,
)
from pipeline.planner.rename_columns import plain_column, rename

Below = Join | Aggregate | Top | Map

_OPTIONAL: Mapping[How, AbstractSet[str]] = {
    How.INNER: frozenset(),
    How.LEFT: frozenset({"right"}),
    How.FULL: frozenset({"left", "right"}),
}
"""The sides that a result may lack: a filter there would not drop results, but replace them."""


@dataclass(frozen=True, slots=True)
class _Move:
    """A possible move of a filter below a box: the target input, and the renamed columns.

    `port` is `left` or `right` for a join, else empty.
    """

    moved: Filter
    below: Below
    port: str
    columns: Mapping[ColumnRef, ColumnRef]

    @property
    def source(self) -> StreamName:
        """The stream that the filter will read."""
        if isinstance(self.below, Join):
            return self.below.left if self.port == "left" else self.below.right
        return self.below.input


def push_filters(draft: Draft) -> Draft:
    """Move each filter as far towards the sources as the results allow."""
    while (move := _find(draft.network)) is not None:
        draft = _perform(draft, move)
    return draft


def _find(network: Network) -> _Move | None:
    streams = network.by_name()
    for box in network.boxes:
        if not isinstance(box, Filter) or box.where.failed is not None or not box.where.columns:
            continue
        below = streams[box.input]
        if not isinstance(below, Below) or not private_to(network, below, box):
            continue
        if isinstance(below, Map) and not _can_move_further(network, below):
            continue
        move = _move(box, below)
        if move is not None:
            return move
    return None


def _can_move_further(network: Network, box: Map) -> bool:
    """Whether a filter below this map could move further from there."""
    source = network.by_name()[box.input]
    return isinstance(source, Below) and private_to(network, source, box)


def _move(moved: Filter, below: Below) -> _Move | None:
    """The move, if every column that the filter reads is repeated from one and the same input."""
    repeated = {computed.name: plain_column(computed.expression) for computed in _selected(below)}
    columns: dict[ColumnRef, ColumnRef] = {}
    ports: set[str] = set()
    for column in moved.where.columns:
        original = repeated.get(column.name)
        if original is None:
            return None
        columns[column] = ColumnRef(original.name)
        ports.add(original.side)
    if len(ports) != 1 or (isinstance(below, Join) and ports & _OPTIONAL[below.how]):
        return None
    return _Move(moved, below, ports.pop(), columns)


def _selected(below: Below) -> tuple[Computed, ...]:
    return below.by if isinstance(below, Aggregate | Top) else below.select


def _perform(draft: Draft, move: _Move) -> Draft:
    network, moved, below = draft.network, move.moved, move.below
    source = network.by_name()[move.source]
    lower = Filter(
        name=unused_name(network, f"{moved.name}_{move.port or 'input'}"),
        input=move.source,
        where=rename(moved.where, move.columns),
        columns=source.columns,
        event_time_column=event_time_column(source),
        key=key_columns(source),
    )
    upper = _reading(move, stream_of_box(lower.name))
    replaced: dict[str, tuple[Box, ...]] = {below.name: (lower, upper), moved.name: ()}
    boxes = tuple(chain.from_iterable(replaced.get(box.name, (box,)) for box in network.boxes))
    return draft.with_boxes(boxes).noting(
        f"filter {moved.name} works before {below.kind} {below.name} as {lower.name}: it reads "
        f"only columns of {move.source}, so that less is kept"
    )


def _reading(move: _Move, stream: StreamName) -> Box:
    """The box below under the filter's name, reading the filtered stream."""
    below, moved = move.below, move.moved
    if isinstance(below, Join):
        left, right = (stream, below.right) if move.port == "left" else (below.left, stream)
        return replace(below, name=moved.name, left=left, right=right, key=moved.key)
    return replace(below, name=moved.name, input=stream, key=moved.key)
