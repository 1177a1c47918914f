"""Column pruning: the columns of an input that boxes read; Avro's decoder skips the others. Pure.

Spark prunes columns of files, but not of `from_avro`. A skipped field cannot make a record
unreadable either.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from pipeline.ids import StreamName
from pipeline.network.boxes.traits import Provenance, traits
from pipeline.network.model import Box, ExternalStream, columns_read, expressions
from pipeline.network.types import Columns
from pipeline.planner.boxes.catalogue import with_columns
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
    """The names of the columns that determine the event time of an input's records."""
    timed = (stream.event_time,) if isinstance(stream, ExternalStream) else ()
    return columns_read(timed)


def pruned(fragment: Fragment) -> Fragment:
    """The fragment without unread columns: of its inputs, and of rows passed between boxes."""
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
        with_columns(box, _those(box.columns, _read_of_output(box, fragment)))
        if _passes_rows(box)
        else box
        for box in fragment.boxes
    )
    return replace(fragment, inputs=inputs, boxes=boxes)


def narrowed(schema_json: str, names: frozenset[str]) -> str:
    """A record's schema with some of its fields: a reader of it skips the others.

    A field that defines a type referred to by one of them is kept too.
    """
    schema = json.loads(schema_json)
    kept = _with_definitions(schema_json, names)
    some = [field for field in schema["fields"] if field["name"] in kept]
    return json.dumps({**schema, "fields": some}, sort_keys=False)


def reading_boxes(stream: FragmentInput, fragment: Fragment, column: str | None) -> tuple[str, ...]:
    """The boxes that read a column of an input, by their names in the document.

    None: every box that reads the input at all; all of them need its event time.
    """
    if column in timing_columns(stream):
        column = None
    found: dict[str, None] = {}
    for box in fragment.boxes:
        reads = stream.name in box.inputs
        if reads and (column is None or column in _by(box, stream.name, fragment)):
            own = (e for e in expressions(box) if column is None or column in columns_read((e,)))
            origins = {e.origin.box: None for e in own if e.origin.box}
            found |= origins or {box.name: None}
    return tuple(found) or (fragment.name,)


def _with_definitions(schema_json: str, names: frozenset[str]) -> frozenset[str]:
    """The names, and those of the fields that define types they refer to."""
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
    """A type and all types inside it."""
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


def _passes_rows(box: Box) -> bool:
    return traits(box).provenance is Provenance.PASSED


def _by_boxes(stream: StreamName, fragment: Fragment) -> frozenset[str]:
    found = (_by(box, stream, fragment) for box in fragment.boxes if stream in box.inputs)
    return frozenset().union(*found)


def _by(box: Box, stream: StreamName, fragment: Fragment) -> frozenset[str]:
    """The columns a box reads of an input; a box that passes rows on reads those of its readers."""
    own = traits(box).reads(box, stream)
    if own is None:
        return _columns_of(stream, fragment)
    return own | _read_of_output(box, fragment) if _passes_rows(box) else own


def _read_of_output(box: Box, fragment: Fragment) -> frozenset[str]:
    """The columns read of a box's output; all of them if it is the fragment's output."""
    last = box.name == fragment.boxes[-1].name
    return _all(box) if last else _by_boxes(StreamName(box.name), fragment)


def _those(columns: Columns, names: frozenset[str]) -> Columns:
    """The columns of these names; SQL ignores case."""
    lower = {name.lower() for name in names}
    return tuple(column for column in columns if column.name.lower() in lower)


def _all(box: Box) -> frozenset[str]:
    return frozenset(column.name for column in box.columns)


def _columns_of(name: StreamName, fragment: Fragment) -> frozenset[str]:
    """All columns of an input or of a box of the fragment."""
    streams = (*fragment.inputs, *fragment.boxes)
    columns = next(stream.columns for stream in streams if stream.name == name)
    return frozenset(column.name for column in columns)
