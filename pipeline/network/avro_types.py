"""Avro schemas as columns, and columns as Avro schemas.

Reading maps a schema as Spark's Avro reader does. A field without a type here (a union of several
types) is no column, but is kept with the reason: only an expression that uses it fails.

Writing is deterministic: the same columns give the same text. A TIMESTAMP of whole milliseconds
becomes timestamp-millis, the usual type; any other timestamp-micros, so that a column passed
through never loses digits. An enum or a uuid that is passed through remains one.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.errors import SchemaError
from pipeline.network.coercion import MAX_PRECISION
from pipeline.network.types import (
    ArrayType,
    Column,
    Columns,
    DataType,
    DecimalType,
    EnumForm,
    Form,
    MapType,
    Scalar,
    StructType,
    UuidForm,
)
from schemas.json_value import Json

RESERVED_PREFIX = "__"
"""Prefix of Medusa's own columns; a field with it is no column."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")

_PRIMITIVES: Mapping[str, Scalar] = {
    "boolean": Scalar.BOOLEAN,
    "int": Scalar.INT,
    "long": Scalar.LONG,
    "float": Scalar.FLOAT,
    "double": Scalar.DOUBLE,
    "bytes": Scalar.BYTES,
    "string": Scalar.STRING,
}
_LOGICAL: Mapping[tuple[str, str], Scalar] = {
    ("int", "date"): Scalar.DATE,
    ("long", "timestamp-millis"): Scalar.TIMESTAMP,
    ("long", "timestamp-micros"): Scalar.TIMESTAMP,
}
_NO_COLUMN: Mapping[tuple[str, str], str] = {
    ("int", "time-millis"): "a time of day without a date",
    ("long", "time-micros"): "a time of day without a date",
    ("long", "local-timestamp-millis"): "a local time without a zone",
    ("long", "local-timestamp-micros"): "a local time without a zone",
    ("long", "timestamp-nanos"): "a time in nanoseconds",
    ("long", "local-timestamp-nanos"): "a local time without a zone",
}


@dataclass(frozen=True, slots=True)
class ReaderSchema:
    """An Avro record schema, read.

    Args:
        columns: its fields that are columns, in order.
        unreadable: its other fields → their contents in words.
        text: the schema as compact JSON with sorted keys, without documentation; all fields kept.
    """

    columns: Columns
    unreadable: tuple[tuple[str, str], ...]
    text: str


@dataclass(frozen=True, slots=True)
class _Read:
    """The result of reading one type; `reason` is set instead if it is not supported."""

    type: DataType
    nullable: bool = False
    millis: bool = False
    reason: str = ""
    form: Form | None = None


def read(schema: Json) -> ReaderSchema:
    """The columns of a record schema, given as a parsed JSON value.

    Raises:
        SchemaError: it is no record, or is malformed; names the path.
    """
    reader = _Reader()
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise SchemaError("the schema of a stream must be an Avro record")
    fields = reader.record_fields(schema, "", "")
    columns: list[Column] = []
    unreadable: list[tuple[str, str]] = []
    for name, made in fields:
        if name.startswith(RESERVED_PREFIX):
            unreadable.append((name, f"a field of which the name begins with {RESERVED_PREFIX}"))
        elif made.reason:
            unreadable.append((name, made.reason))
        else:
            columns.append(Column(name, made.type, made.nullable, made.millis, made.form))
    text = json.dumps(_without_docs(schema), sort_keys=True, separators=(",", ":"))
    return ReaderSchema(tuple(columns), tuple(unreadable), text)


class _Reader:
    """Walks a schema; keeps the named types defined so far."""

    def __init__(self) -> None:
        self._named: dict[str, _Read] = {}
        self._open: list[str] = []

    def read(self, schema: Json, namespace: str, path: str) -> _Read:
        """Any type."""
        if isinstance(schema, list):
            return self._union(schema, namespace, path)
        if isinstance(schema, str):
            return self._name(schema, namespace, path)
        if isinstance(schema, dict):
            return self._object(schema, namespace, path)
        raise SchemaError(f"{path}: a type must be a name, a list or an object")

    def _object(self, schema: Mapping[str, Json], namespace: str, path: str) -> _Read:
        kind = schema.get("type")
        if kind in ("record", "error", "enum", "fixed"):
            return self._define(schema, str(kind), namespace, path)
        if kind == "array":
            return self._array(schema, namespace, path)
        if kind == "map":
            return self._map(schema, namespace, path)
        if isinstance(kind, str) and kind in _PRIMITIVES:
            return _primitive(kind, schema, path)
        if isinstance(kind, dict | list | str):
            return self.read(kind, namespace, path)
        raise SchemaError(f"{path}: the type is missing")

    def _name(self, name: str, namespace: str, path: str) -> _Read:
        if name in _PRIMITIVES:
            return _Read(_PRIMITIVES[name])
        if name == "null":
            return _Read(Scalar.NULL, reason="nothing but null")
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        for candidate in (full, name):
            if candidate in self._open:
                raise SchemaError(f"{path}: {name} contains itself, which Spark cannot read")
            if candidate in self._named:
                return self._named[candidate]
        raise SchemaError(f"{path}: there is no type {name}")

    def _union(self, branches: Sequence[Json], namespace: str, path: str) -> _Read:
        given = [b for b in branches if b != "null"]
        made = [self.read(branch, namespace, path) for branch in given]
        if len(made) == 1:
            (one,) = made
            optional = len(given) < len(branches) or one.nullable
            return _Read(one.type, optional, one.millis, one.reason, one.form)
        if not made:
            return _Read(Scalar.NULL, reason="nothing but null")
        kinds = " and ".join(m.reason or str(m.type) for m in made)
        return _Read(Scalar.NULL, reason=f"a union of {kinds}")

    def _define(self, schema: Mapping[str, Json], kind: str, namespace: str, path: str) -> _Read:
        full = _full_name(schema, namespace, path)
        if full in self._named or full in self._open:
            raise SchemaError(f"{path}: {full} is defined twice")
        if kind == "enum":
            made = _Read(Scalar.STRING, form=_enum(schema, full, path))
        elif kind == "fixed":
            if not isinstance(schema.get("size"), int):
                raise SchemaError(f"{path}: the fixed {full} has no size")
            made = _decimal(schema, path) or _Read(Scalar.BYTES)
        else:
            fields = self.record_fields(schema, namespace, path)
            broken = [f"{name}: {m.reason}" for name, m in fields if m.reason]
            reason = f"a record with {broken[0]}" if broken else ""
            columns = tuple(Column(n, m.type, m.nullable, m.millis) for n, m in fields)
            made = _Read(StructType(full.rpartition(".")[2], columns), reason=reason)
        self._named[full] = made
        return made

    def record_fields(
        self, schema: Mapping[str, Json], namespace: str, path: str
    ) -> list[tuple[str, _Read]]:
        """The fields of a record, in order."""
        full = _full_name(schema, namespace, path)
        fields = schema.get("fields")
        if not isinstance(fields, list):
            raise SchemaError(f"{path or full}: the record {full} has no fields")
        self._open.append(full)
        made: list[tuple[str, _Read]] = []
        seen: set[str] = set()
        for entry in fields:
            name = entry.get("name") if isinstance(entry, dict) else None
            if (
                not isinstance(entry, dict)
                or not isinstance(name, str)
                or not _NAME.fullmatch(name)
            ):
                raise SchemaError(f"{path or full}: a field has no proper name")
            where = f"{path}.{name}" if path else name
            if name.lower() in seen:
                raise SchemaError(f"{where}: two fields have this name, regardless of case")
            seen.add(name.lower())
            if "type" not in entry:
                raise SchemaError(f"{where}: the field has no type")
            made.append((name, self.read(entry["type"], full.rpartition(".")[0], where)))
        self._open.pop()
        return made

    def _array(self, schema: Mapping[str, Json], namespace: str, path: str) -> _Read:
        if "items" not in schema:
            raise SchemaError(f"{path}: the array has no items")
        element = self.read(schema["items"], namespace, f"{path}[]")
        reason = f"an array of {element.reason}" if element.reason else ""
        return _Read(ArrayType(element.type, element.nullable), reason=reason)

    def _map(self, schema: Mapping[str, Json], namespace: str, path: str) -> _Read:
        if "values" not in schema:
            raise SchemaError(f"{path}: the map has no values")
        value = self.read(schema["values"], namespace, f"{path}{{}}")
        reason = f"a map of {value.reason}" if value.reason else ""
        return _Read(MapType(value.type, value.nullable), reason=reason)


def _enum(schema: Mapping[str, Json], full: str, path: str) -> EnumForm:
    symbols, default = schema.get("symbols"), schema.get("default")
    if not isinstance(symbols, list):
        raise SchemaError(f"{path}: the enum {full} has no symbols")
    return EnumForm(full, tuple(map(str, symbols)), default if isinstance(default, str) else None)


def _primitive(kind: str, schema: Mapping[str, Json], path: str) -> _Read:
    logical = schema.get("logicalType")
    if not isinstance(logical, str):
        return _Read(_PRIMITIVES[kind])
    if (kind, logical) in _NO_COLUMN:
        return _Read(Scalar.NULL, reason=_NO_COLUMN[kind, logical])
    if kind == "bytes":
        return _decimal(schema, path) or _Read(Scalar.BYTES)
    if (kind, logical) == ("string", "uuid"):
        return _Read(Scalar.STRING, form=UuidForm())
    data_type = _LOGICAL.get((kind, logical), _PRIMITIVES[kind])
    return _Read(data_type, millis=logical == "timestamp-millis" and kind == "long")


def _decimal(schema: Mapping[str, Json], path: str) -> _Read | None:
    if schema.get("logicalType") != "decimal":
        return None
    precision, scale = schema.get("precision"), schema.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None  # Avro ignores a logical type that is not complete
    if not 0 <= scale <= precision or precision < 1:
        return None
    if precision > MAX_PRECISION:
        raise SchemaError(f"{path}: a decimal of {precision} digits; {MAX_PRECISION} is the most")
    return _Read(DecimalType(precision, scale))


def _full_name(schema: Mapping[str, Json], namespace: str, path: str) -> str:
    name = schema.get("name")
    if not isinstance(name, str) or not _FULL_NAME.fullmatch(name):
        raise SchemaError(f"{path + ': ' if path else ''}a {schema.get('type')} has no proper name")
    own = schema.get("namespace", namespace)
    return name if "." in name or not own else f"{own}.{name}"


def _without_docs(schema: Json) -> Json:
    """The schema without `doc`, which has no effect; defaults are left unchanged."""
    if isinstance(schema, list):
        return [_without_docs(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in ("default", "symbols", "aliases") else _without_docs(value)
        for key, value in schema.items()
        if key != "doc"
    }


# --- writing ------------------------------------------------------------------------------------

_WRITTEN: Mapping[Scalar, Json] = {
    **{scalar: name for name, scalar in _PRIMITIVES.items()},
    Scalar.DATE: {"type": "int", "logicalType": "date"},
}


class _Names:
    """The named types of a written schema, each defined once.

    Args:
        namespace: of the record, and of every type in it without its own.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._defined: dict[str, Json] = {}

    def record(self, name: str) -> str:
        """A free name for a record: this one, or one with a suffix."""
        return self._free(name, self._namespace)

    def enum(self, form: EnumForm) -> Json:
        """An enum's definition, or its name if already defined; a different enum gets another name.

        A reader compares names without their namespaces.
        """
        own, _, name = form.name.rpartition(".")
        namespace = own or self._namespace
        written: dict[str, Json] = {"type": "enum", "name": name}
        if own:
            written["namespace"] = own
        written["symbols"] = list(form.symbols)
        if form.default is not None:
            written["default"] = form.default
        found = next((at for at, known in self._defined.items() if known == written), None)
        if found is not None:
            return found
        free = self._free(name, namespace)
        self._defined[_full(free, namespace)] = written
        return {**written, "name": free}

    def _free(self, name: str, namespace: str) -> str:
        while _full(name, namespace) in self._defined:
            name += "_"
        self._defined[_full(name, namespace)] = None
        return name


def _full(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace else name


def to_avro(columns: Columns, record_name: str, namespace: str) -> str:
    """The Avro schema of a derived stream's values or keys, as compact JSON.

    A column that can be null becomes `["null", T]` with default null.
    """
    schema: dict[str, Json] = {"type": "record", "name": record_name}
    if namespace:
        schema["namespace"] = namespace
    names = _Names(namespace)
    schema["fields"] = _written_fields(columns, names.record(record_name), names)
    return json.dumps(schema, separators=(",", ":"))


def _written_fields(columns: Columns, prefix: str, names: _Names) -> list[Json]:
    fields: list[Json] = []
    for column in columns:
        written = _written_column(column, f"{prefix}_{column.name}", names)
        if column.nullable:
            fields.append({"name": column.name, "type": ["null", written], "default": None})
        else:
            fields.append({"name": column.name, "type": written})
    return fields


def _written_column(column: Column, name: str, names: _Names) -> Json:
    match column.form:
        case EnumForm() as form:
            return names.enum(form)
        case UuidForm():
            return {"type": "string", "logicalType": "uuid"}
        case None:
            return _written(column.type, name, names, millis=column.millis)


def _written(data_type: DataType, name: str, names: _Names, *, millis: bool = False) -> Json:
    """One type; nested records are named after their path, since a name identifies one record."""
    if isinstance(data_type, DecimalType):
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": data_type.precision,
            "scale": data_type.scale,
        }
    if isinstance(data_type, ArrayType):
        element = _written(data_type.element, name, names)
        return {
            "type": "array",
            "items": ["null", element] if data_type.element_nullable else element,
        }
    if isinstance(data_type, MapType):
        value = _written(data_type.value, name, names)
        return {"type": "map", "values": ["null", value] if data_type.value_nullable else value}
    if isinstance(data_type, StructType):
        free = names.record(name)
        fields = _written_fields(data_type.fields, free, names)
        return {"type": "record", "name": free, "fields": fields}
    if data_type is Scalar.TIMESTAMP:
        return {"type": "long", "logicalType": f"timestamp-{'millis' if millis else 'micros'}"}
    if data_type not in _WRITTEN:
        raise SchemaError(f"a column cannot have the type {data_type}")
    return _WRITTEN[data_type]
