"""Which boxes get a topic so that each record is judged once, and as a whole.

A record that a box cannot compute goes to the dead letters, from where it can be sent again, and
then must count as if it had come for the first time. So nothing of it may have been published. Two
kinds of boxes would break that if they were computed together with what stands behind them:

- a flat_map makes several rows of a record. Where a box behind it can fail for one of them, the
  others would be published: so the rows become records of a topic first, each judged by itself;
- the branches of a route may be computed in different fragments. Where a condition can fail, each
  would have its own dead letter of the record: so the route is computed once, into a topic.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from pipeline.ids import StreamName
from pipeline.names import stream_of_box
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.route import Branch, Route
from pipeline.network.boxes.union import Union
from pipeline.network.model import Box, Network
from pipeline.planner.columns import expressions
from pipeline.planner.draft import readers_of


def judged_whole(network: Network, ends: AbstractSet[StreamName]) -> Mapping[StreamName, str]:
    """The streams that get a topic for this, each with the reason.

    Args:
        network: the network.
        ends: the streams that have a topic anyway.
    """
    found = {
        stream_of_box(box.name): "a condition of it can fail, and its branches may be read apart"
        for box in network.boxes
        if isinstance(box, Route) and may_refuse(box)
    }
    readers = readers_of(network)
    for box in reversed(network.boxes):
        stream = stream_of_box(box.name)
        if not isinstance(box, FlatMap) or stream in ends:
            continue
        refusing = _refusing_behind(stream, readers, ends | found.keys())
        if refusing is not None:
            found[stream] = f"{refusing.kind} {refusing.name} can fail for some rows of a record"
    return found


def may_refuse(box: Box) -> bool:
    """Whether there can be rows that a box cannot compute as it reads them.

    What an aggregate or a join computes of its results is not meant: no record stands for those.
    """
    match box:
        case Filter() | Map() | Route():
            return any(expression.failed is not None for expression in expressions(box))
        case Aggregate():
            arguments = tuple(aggregation.argument for aggregation in box.aggregations)
            return any(e.failed is not None for e in expressions((*box.by, *arguments)))
        case Union() | Branch() | Join():
            return False
        case _:
            return True


def _refusing_behind(
    stream: StreamName, readers: Mapping[StreamName, tuple[Box, ...]], ends: AbstractSet[StreamName]
) -> Box | None:
    """A box that may refuse rows of a stream before they come to a topic or to a state."""
    todo = [stream]
    while todo:
        for box in readers[todo.pop()]:
            if may_refuse(box):
                return box
            own = stream_of_box(box.name)
            if not box.stateful and own not in ends:
                todo.append(own)
    return None
