"""Which columns of an input anything reads: Avro's decoder passes over all others. Pure.

Spark prunes columns of files, not of what `from_avro` makes. What is passed over cannot make a
record unreadable either.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass

from pipeline.ids import StreamName
from pipeline.network.boxes.aggregate import Aggregate
from pipeline.network.boxes.filter import Filter
from pipeline.network.boxes.flat_map import FlatMap
from pipeline.network.boxes.map import Map
from pipeline.network.boxes.top import Top
from pipeline.network.model import Box, Expression, ExternalStream
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
    everything = frozenset(column.name for column in stream.columns)
    names = _by_boxes(stream.name, fragment)
    if isinstance(stream, ExternalStream):
        names |= _of((stream.event_time,))
    return everything & names


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
        if stream.name in box.inputs and (column is None or column in _by(box, fragment)):
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
        case FlatMap() | Top():
            return _of(expressions(box))
        case Aggregate():
            arguments = (e for a in box.aggregations for e in a.reads)
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
