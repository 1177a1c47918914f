"""Rows as the content of a file: JSON lines, or Parquet with columns by the schema. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from connectors.files.records import types_of
from schemas.avro import AvroSchema
from schemas.json_value import Json, JsonObject
from schemas.types import AvroType, Kind, Logical, Primitive, UnionType

_SIMPLE: Mapping[Kind, Callable[[], pa.DataType]] = {
    Kind.BOOLEAN: pa.bool_,
    Kind.INT: pa.int32,
    Kind.LONG: pa.int64,
    Kind.FLOAT: pa.float32,
    Kind.DOUBLE: pa.float64,
}
_INSTANTS = {Logical.TIMESTAMP_MILLIS: "ms", Logical.TIMESTAMP_MICROS: "us"}


def as_lines(rows: Sequence[JsonObject]) -> bytes:
    """JSON lines."""
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    return "".join(f"{line}\n" for line in lines).encode()


def as_parquet(rows: Sequence[JsonObject], schema: AvroSchema) -> bytes:
    """A file of Parquet: a column for each field.

    Numbers, booleans, dates and timestamps in ms or µs have their types; a text is a text;
    everything else is its JSON as a text.
    """
    arrays, names = [], []
    for name, type_ in types_of(schema.root).items():
        arrow, convert = _column(type_)
        values = [None if row.get(name) is None else convert(row[name]) for row in rows]
        arrays.append(pa.array(values, arrow))
        names.append(name)
    batch = pa.RecordBatch.from_arrays(arrays, names=names)
    out = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_batches([batch]), out)
    return out.getvalue().to_pybytes()


def _column(type_: AvroType) -> tuple[pa.DataType, Callable[[Json], Any]]:
    """The type of a column, and what makes its values of those in JSON."""
    if isinstance(type_, UnionType):
        others = [one for one in type_.branches if one != Primitive(Kind.NULL)]
        return _column(others[0]) if len(others) == 1 else (pa.string(), _text)
    if not isinstance(type_, Primitive):
        return pa.string(), _text
    if type_.logical in _INSTANTS:
        return pa.timestamp(_INSTANTS[type_.logical], tz="UTC"), _instant
    if type_.logical is Logical.DATE:
        return pa.date32(), _date
    if type_.logical is None and type_.kind in _SIMPLE:
        return _SIMPLE[type_.kind](), _number if type_.kind in _FLOATING else _same
    return pa.string(), _text


_FLOATING = (Kind.FLOAT, Kind.DOUBLE)


def _same(value: Json) -> Any:
    return value


def _number(value: Json) -> float:
    return float(str(value))  # NaN and Infinity are texts in JSON


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _instant(value: Json) -> datetime:
    return datetime.fromisoformat(str(value))


def _date(value: Json) -> date:
    return date.fromisoformat(str(value))
