"""Which columns of an input anything reads: Avro's decoder passes over all others. Pure.

Spark prunes columns of files, not of what `from_avro` makes.
"""

from collections.abc import Iterable

from pipeline.ids import StreamName
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.map import Map
from pipeline.network.model import Box, Expression, ExternalStream
from pipeline.planner.plan import Fragment, FragmentInput


def read_columns(stream: FragmentInput, fragment: Fragment) -> frozenset[str]:
    """The names of the columns of an input that its event time or a box of the fragment reads."""
    everything = frozenset(column.name for column in stream.columns)
    names = _by_boxes(stream.name, fragment)
    if isinstance(stream, ExternalStream):
        names |= _of((stream.event_time,))
    return everything & names


def _by_boxes(stream: StreamName, fragment: Fragment) -> frozenset[str]:
    found = (_by(box, fragment) for box in fragment.boxes if stream in box.inputs)
    return frozenset().union(*found)


def _by(box: Box, fragment: Fragment) -> frozenset[str]:
    """What a box reads of its input; one that hands rows on whole reads what others read of them.

    A join reads everything: a pair that cannot be computed is kept with all its columns.
    """
    match box:
        case Filter():
            last = box is fragment.boxes[-1]
            handed_on = _all(box) if last else _by_boxes(StreamName(box.name), fragment)
            return _of((box.where,)) | handed_on
        case Map():
            return _of(computed.expression for computed in box.select)
        case Aggregate():
            arguments = (a.argument for a in box.aggregations if a.argument is not None)
            return _of((*(group.expression for group in box.by), *arguments))
        case _:
            return frozenset().union(*(_columns_of(name, fragment) for name in box.inputs))


def _of(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(column.name for e in expressions for column in e.columns)


def _all(box: Box) -> frozenset[str]:
    return frozenset(column.name for column in box.columns)


def _columns_of(name: StreamName, fragment: Fragment) -> frozenset[str]:
    """All columns of an input or of a box of the fragment."""
    streams = (*fragment.inputs, *fragment.boxes)
    columns = next(stream.columns for stream in streams if stream.name == name)
    return frozenset(column.name for column in columns)
