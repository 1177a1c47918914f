"""Which columns of an input anything reads: Avro's decoder passes over all others. Pure.

Spark prunes columns of files, not of what `from_avro` makes. What is passed over cannot make a
record unreadable either.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace

from pipeline.ids import StreamName
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.as_of import AsOf
from pipeline.network.boxes.deduplicate import Deduplicate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.join import Join
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.route import BRANCH, Branch, Route
from pipeline.network.boxes.top import Top
from pipeline.network.boxes.union import Union
from pipeline.network.model import Box, Expression, ExternalStream
from pipeline.network.types import Columns
from pipeline.planner.plan import Fragment, FragmentInput
from schemas.avro import parse
from schemas.types import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    Reference,
    UnionType,
)


def read_columns(stream: FragmentInput, fragment: Fragment) -> frozenset[str]:
    """The names of the columns of an input that its event time or a box of the fragment reads."""
    names = _by_boxes(stream.name, fragment) | timing_columns(stream)
    return frozenset(column.name for column in _those(stream.columns, names))


def timing_columns(stream: FragmentInput) -> frozenset[str]:
    """The names of the columns that decide the event time of an input's records."""
    return _of((stream.event_time,)) if isinstance(stream, ExternalStream) else frozenset()


def pruned(fragment: Fragment) -> Fragment:
    """The fragment without what nothing reads: columns of its inputs, and of rows on their way."""
    inputs = tuple(
        replace(
            stream,
            schema_json=narrowed(stream.schema_json, names),
            columns=_those(stream.columns, names),
        )
        for stream in fragment.inputs
        for names in (read_columns(stream, fragment),)
    )
    boxes = tuple(
        replace(box, columns=_those(box.columns, _handed_on(box, fragment)))
        if isinstance(box, _HandingOn)
        else box
        for box in fragment.boxes
    )
    return replace(fragment, inputs=inputs, boxes=boxes)


def narrowed(schema_json: str, names: frozenset[str]) -> str:
    """A record's schema with some of its fields: a reader of it skips the others.

    A field that defines a type which one of them refers to stays too.
    """
    schema = json.loads(schema_json)
    kept = _with_definitions(schema_json, names)
    some = [field for field in schema["fields"] if field["name"] in kept]
    return json.dumps({**schema, "fields": some}, sort_keys=False)


def reading_boxes(stream: FragmentInput, fragment: Fragment, column: str | None) -> tuple[str, ...]:
    """The boxes that read a column of an input, by their names in the document.

    None: every box that reads the input at all; so is what all of them need, its event time.
    """
    if isinstance(stream, ExternalStream) and column in _of((stream.event_time,)):
        column = None
    found: dict[str, None] = {}
    for box in fragment.boxes:
        reads = stream.name in box.inputs
        if reads and (column is None or column in _by(box, stream.name, fragment)):
            own = (e for e in expressions(box) if column is None or column in _of((e,)))
            origins = {e.origin.box: None for e in own if e.origin.box}
            found |= origins or {box.name: None}
    return tuple(found) or (fragment.name,)


def expressions(value: object) -> Iterator[Expression]:
    """Every expression in a box, or in several."""
    if isinstance(value, Expression):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from expressions(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from expressions(getattr(value, field.name))


def _with_definitions(schema_json: str, names: frozenset[str]) -> frozenset[str]:
    """The names, and those of the fields that define what they refer to."""
    root = parse(schema_json).root
    every = {f.name: f.type for f in root.fields} if isinstance(root, RecordType) else {}
    defines = {n: {t.name for t in _types(of) if isinstance(t, _Named)} for n, of in every.items()}
    refers = {
        n: {t.name for t in _types(of) if isinstance(t, Reference)} for n, of in every.items()
    }
    kept, grown = names, frozenset[str]()
    while kept != grown:
        grown = kept
        needed = set().union(*(refers[name] for name in kept & refers.keys()))
        kept |= {name for name, defined in defines.items() if defined & needed}
    return kept


_Named = RecordType | EnumType | FixedType


def _types(of: AvroType) -> Iterator[AvroType]:
    """A type and all that stand in it."""
    yield of
    match of:
        case ArrayType(inner) | MapType(inner):
            yield from _types(inner)
        case UnionType(branches):
            for branch in branches:
                yield from _types(branch)
        case RecordType():
            for field in of.fields:
                yield from _types(field.type)


_HandingOn = Filter | Route | Branch | Union | Deduplicate
"""Boxes that hand rows on as they are, or with a column more."""


def _by_boxes(stream: StreamName, fragment: Fragment) -> frozenset[str]:
    found = (_by(box, stream, fragment) for box in fragment.boxes if stream in box.inputs)
    return frozenset().union(*found)


def _by(box: Box, stream: StreamName, fragment: Fragment) -> frozenset[str]:
    """What a box reads of an input; one that hands rows on reads what others read of them."""
    own = _own(box, stream, fragment)
    return own | _handed_on(box, fragment) if isinstance(box, _HandingOn) else own


def _own(box: Box, stream: StreamName, fragment: Fragment) -> frozenset[str]:
    """What a box reads of an input itself. A function may read every column."""
    match box:
        case Filter() | Route() | Union() | Map() | FlatMap() | Top():
            return _of(expressions(box))
        case Branch():
            return frozenset({BRANCH})
        case Deduplicate():
            return frozenset(box.by)
        case Aggregate():
            arguments = (e for a in box.aggregations for e in a.reads)
            return _of((*(group.expression for group in box.by), *arguments))
        case Join() | AsOf():
            return _of_side(box, stream)
        case _:
            return _columns_of(stream, fragment)


def _of_side(box: Join | AsOf, stream: StreamName) -> frozenset[str]:
    """What a join reads of a stream, which may be both of its sides."""
    sides = {side for side, of in (("left", box.left), ("right", box.right)) if of == stream}
    selected = (column for e in expressions(box.select) for column in e.columns)
    named = {column.name for column in selected if column.side in sides}
    pairs = (
        name
        for pair in box.on
        for side, name in zip(("left", "right"), pair, strict=True)
        if side in sides
    )
    return frozenset(named.union(pairs))


def _handed_on(box: Box, fragment: Fragment) -> frozenset[str]:
    """What is read of the rows that a box hands on: everything if they are the results."""
    last = box.name == fragment.boxes[-1].name
    return _all(box) if last else _by_boxes(StreamName(box.name), fragment)


def _those(columns: Columns, names: frozenset[str]) -> Columns:
    """The columns of these names; SQL does not tell upper from lower case."""
    lower = {name.lower() for name in names}
    return tuple(column for column in columns if column.name.lower() in lower)


def _of(expressions: Iterable[Expression]) -> frozenset[str]:
    return frozenset(column.name for e in expressions for column in e.columns)


def _all(box: Box) -> frozenset[str]:
    return frozenset(column.name for column in box.columns)


def _columns_of(name: StreamName, fragment: Fragment) -> frozenset[str]:
    """All columns of an input or of a box of the fragment."""
    streams = (*fragment.inputs, *fragment.boxes)
    columns = next(stream.columns for stream in streams if stream.name == name)
    return frozenset(column.name for column in columns)
