"""Selection of records by a condition, and projection to columns. Pure.

Conditions and columns are expressions as in a box, over the newest schema of the topic, computed
without Spark. A record for which the condition has no value is left out and counted.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from brokers.records import KafkaRecord
from pipeline.errors import InputError, SchemaError
from pipeline.network import avro_types
from pipeline.network.evaluating.evaluate import Computation, computation
from pipeline.network.evaluating.failing import NoValueError
from pipeline.network.evaluating.numbers import single
from pipeline.network.evaluating.parts import Row
from pipeline.network.evaluating.values import Value
from pipeline.network.scope import Scope, Source
from pipeline.network.term import Fault
from pipeline.network.types import (
    ArrayType,
    Column,
    Columns,
    DataType,
    MapType,
    Scalar,
    StructType,
    UuidForm,
)
from pipeline.operations.records.decoding import DecodedRecord, SchemaFinder, decode_record
from schemas.avro import AvroSchema, parse
from schemas.codec import decode, to_json
from schemas.json_value import Json
from schemas.logical import Native
from schemas.wire import Part, WireFault, identified, words

_COMPUTED = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)(.*)", re.DOTALL)
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_MICRO = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Projection:
    """Columns to compute, and the Avro schema of all of them."""

    columns: tuple[tuple[Column, Computation], ...]
    schema: AvroSchema


@dataclass(frozen=True, slots=True)
class Selection:
    """A condition and a projection over the records of one topic.

    Args:
        schema: the reader schema.
        columns: the fields of the schema that are columns.
        condition: selects records; None: all.
        projection: selects columns; None: whole records.
    """

    schema: AvroSchema
    columns: Columns
    condition: Computation | None
    projection: Projection | None


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Column values of a record; None, with the reason in `problem`, if it cannot be decoded."""

    values: Row | None
    problem: str = ""


def parse_selection(schema: AvroSchema, where: str | None, select: Sequence[str]) -> Selection:
    """Parse a condition and columns, and check them against a schema.

    Args:
        schema: the schema of the topic.
        where: a condition, as an SQL expression; None: all records.
        select: texts such as `a,b` or `NAME=EXPRESSION`; none: all fields.

    Raises:
        InputError: one of them does not fit the schema, or only Spark computes it.
        SchemaError: the schema is no record.
    """
    read = avro_types.read(schema.value)
    scope = Scope((Source(read.columns, unreadable=dict(read.unreadable)),))
    condition = None
    if where is not None:
        condition = _checked(computation(where, scope, wants=Scalar.BOOLEAN), f"--where {where}")
    projection = _projection(select, scope) if select else None
    return Selection(schema, read.columns, condition, projection)


def _projection(select: Sequence[str], scope: Scope) -> Projection:
    found: dict[str, tuple[Column, Computation]] = {}
    for name, text, named in _entries(select):
        made = _checked(computation(text, scope, named=named), f"--select {name}")
        if name.lower() in found:
            raise InputError(f"--select names {name} twice", hint="write NAME=EXPRESSION.")
        typed = made.expression
        column = Column(
            name, typed.type, nullable=typed.nullable, millis=typed.millis, form=typed.form
        )
        found[name.lower()] = (column, made)
    columns = tuple(column for column, _ in found.values())
    return Projection(tuple(found.values()), parse(avro_types.to_avro(columns, "Selected", "")))


def _entries(select: Sequence[str]) -> list[tuple[str, str, bool]]:
    """Parse to name, expression, and whether the expression is only a column name."""
    found = []
    for one in (part.strip() for written in select for part in _split(written)):
        computed = _COMPUTED.fullmatch(one)
        if computed:
            found.append((computed[1], computed[2], False))
        elif _COLUMN.fullmatch(one):
            found.append((one.rpartition(".")[2], one, True))
        else:
            raise InputError(
                f"--select {one}: this is no name of a column",
                hint="write a,b for columns, and NAME=EXPRESSION for each that is computed.",
            )
    return found


def _split(written: str) -> list[str]:
    """Split at the commas outside of parentheses, brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for character in written:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth <= 0:
            parts.append("")
            continue
        parts[-1] += character
    return parts


def _checked(found: Computation | tuple[Fault, ...], what: str) -> Computation:
    if isinstance(found, Computation):
        return found
    fault = found[0]
    choices = f"there is: {', '.join(fault.choices)}." if fault.choices else ""
    raise InputError(
        "; ".join(one.message for one in found), place=what, hint=f"{choices} {fault.hint}".strip()
    )


@dataclass
class Selector:
    """Evaluator of a selection over records.

    Args:
        registry: has the schemas of the records.
        selection: condition and columns; None: whole records, all of them.
        undecided: number of records skipped because the condition has no value for them.
        first_undecided: the first of them, and why.
    """

    registry: SchemaFinder
    selection: Selection | None
    undecided: int = 0
    first_undecided: str = ""
    _last: tuple[KafkaRecord, ColumnValues] | None = None

    @property
    def selects_all(self) -> bool:
        """Whether there is no condition."""
        return self.selection is None or self.selection.condition is None

    def matches(self, record: KafkaRecord) -> bool:
        """Whether the condition holds for a record."""
        if self.selection is None or self.selection.condition is None:
            return True
        if record.value is None:
            return False
        row = self._row(record, self.selection)
        problem = row.problem
        if row.values is not None:
            try:
                return bool(self.selection.condition.compute(row.values))
            except NoValueError as error:
                problem = str(error)
        self.undecided += 1
        where = f"{record.partition}@{record.offset}"
        self.first_undecided = self.first_undecided or f"{where}: {problem}"
        return False

    def decode(self, record: KafkaRecord) -> DecodedRecord:
        """Decode a matching record, with the selected columns as its value."""
        whole = decode_record(record, self.registry)
        if self.selection is None or self.selection.projection is None or record.value is None:
            return whole
        row = self._row(record, self.selection)
        if row.values is None:
            return whole
        try:
            return replace(whole, value=_value(self.selection.projection, row.values))
        except NoValueError as error:
            return replace(whole, value=None, problem=str(error))

    def _row(self, record: KafkaRecord, selection: Selection) -> ColumnValues:
        """Column values, decoded once for the condition and then the projection."""
        if self._last is None or self._last[0] is not record:
            found = column_values(record, selection.schema, selection.columns, self.registry)
            self._last = (record, found)
        return self._last[1]


def column_values(
    record: KafkaRecord, schema: AvroSchema, columns: Columns, registry: SchemaFinder
) -> ColumnValues:
    """Decode a record that has a value into the columns of a reader schema."""
    framed = identified(record.value, record.headers, Part.VALUE)
    if isinstance(framed, WireFault):
        return ColumnValues(None, framed.value)
    writer = registry.schema_of(framed.schema)
    if writer is None:
        return ColumnValues(None, f"the registry has no schema with {words(framed.schema)}")
    try:
        value = decode(writer, schema, framed.body)
    except SchemaError as error:
        return ColumnValues(None, error.message)
    return ColumnValues({c.name: _from_avro(c.type, value[c.name]) for c in columns})


def _value(projection: Projection, row: Row) -> Json:
    made = {
        column.name: _to_avro_column(column, one.compute(row)) for column, one in projection.columns
    }
    return to_json(projection.schema, made)


def _from_avro(data_type: DataType, value: Native) -> Value:  # noqa: PLR0911 - one case for each type
    """Convert a decoded value to the form that expressions use."""
    match data_type, value:
        case _, None:
            return None
        case Scalar.TIMESTAMP, datetime():
            return (value - _EPOCH) // _MICRO
        case Scalar.DATE, date():
            return (value - _FIRST_DAY).days
        case Scalar.STRING, _:
            return str(value)
        case Scalar.FLOAT | Scalar.DOUBLE, int() | float():  # a whole number in an earlier schema
            return single(float(value)) if data_type is Scalar.FLOAT else float(value)
        case ArrayType(element), list():
            return [_from_avro(element, part) for part in value]
        case MapType(of), dict():
            return {name: _from_avro(of, part) for name, part in value.items()}
        case StructType(_, fields), dict():
            return {one.name: _from_avro(one.type, value[one.name]) for one in fields}
        case _, int() | bytes() | Decimal():
            return value
    raise _unexpected(data_type, value)


def _to_avro_column(column: Column, value: Value) -> Native:
    """Convert the value of an expression to the form that the encoder accepts."""
    if isinstance(column.form, UuidForm) and isinstance(value, str):
        return UUID(value)
    return _to_avro(column.type, value)


def _to_avro(data_type: DataType, value: Value) -> Native:
    try:
        match data_type, value:
            case Scalar.TIMESTAMP, int():
                return _EPOCH + value * _MICRO
            case Scalar.DATE, int():
                return _FIRST_DAY + timedelta(days=value)
            case ArrayType(element), list():
                return [_to_avro(element, part) for part in value]
            case MapType(of), dict():
                return {name: _to_avro(of, part) for name, part in value.items()}
            case StructType(_, fields), dict():
                return {one.name: _to_avro(one.type, value[one.name]) for one in fields}
            case _, None | int() | float() | str() | bytes() | Decimal():
                return value
    except OverflowError:
        raise NoValueError("a time outside of the years 1 to 9999") from None
    raise _unexpected(data_type, value)


def _unexpected(data_type: DataType, value: Native | Value) -> TypeError:
    return TypeError(f"a value of {data_type} was expected, not {type(value).__name__}")
