"""Hypothesis strategies: Avro schemas of any shape, and values of them."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from schemas.avro import AvroSchema, parse
from schemas.types import (
    INT_MAX,
    INT_MIN,
    LONG_MAX,
    LONG_MIN,
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    Kind,
    Logical,
    MapType,
    Primitive,
    RecordType,
    UnionType,
)

SCALARS: list[Any] = [
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "bytes",
    "string",
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
    {"type": "string", "logicalType": "uuid"},
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
]


@st.composite
def schema_values(draw: st.DrawFn) -> Any:  # noqa: C901 - one case for each kind
    """The JSON value of a valid schema."""
    names = iter(range(1000))

    def any_type(  # noqa: PLR0911 - one return for each kind
        depth: int, *, union: bool = True
    ) -> Any:
        kinds = ["scalar", "scalar", "named"]
        if depth:
            kinds += ["array", "map", "record", *(["union"] if union else [])]
        match draw(st.sampled_from(kinds)):
            case "scalar":
                return draw(st.sampled_from(SCALARS))
            case "named":
                name = f"N{next(names)}"
                if draw(st.booleans()):
                    return {"type": "enum", "name": name, "symbols": ["A", "B", "C"]}
                return {"type": "fixed", "name": name, "size": draw(st.integers(0, 9))}
            case "array":
                return {"type": "array", "items": any_type(depth - 1)}
            case "map":
                return {"type": "map", "values": any_type(depth - 1)}
            case "union":
                branches = ["null", any_type(depth - 1, union=False)]
                return draw(st.permutations(branches))
        return record(depth)

    def record(depth: int) -> Any:
        name = f"R{next(names)}"
        count = draw(st.integers(0, 4))
        fields = [{"name": f"f{i}", "type": any_type(depth - 1)} for i in range(count)]
        made: dict[str, Any] = {"type": "record", "name": name, "fields": fields}
        if draw(st.booleans()):
            made["namespace"] = "some.space"
        return made

    return any_type(3) if draw(st.booleans()) else record(3)


def schemas() -> st.SearchStrategy[AvroSchema]:
    """Parsed schemas."""
    return schema_values().map(lambda value: parse(json.dumps(value)))


_LOGICAL: dict[Logical, st.SearchStrategy[Any]] = {
    Logical.UUID: st.uuids(),
    Logical.DATE: st.dates(min_value=date(1, 1, 1)),
    Logical.TIME_MILLIS: st.times().map(
        lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
    ),
    Logical.TIME_MICROS: st.times(),
}
_PLAIN: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.NULL: st.none(),
    Kind.BOOLEAN: st.booleans(),
    Kind.INT: st.integers(INT_MIN, INT_MAX),
    Kind.LONG: st.integers(LONG_MIN, LONG_MAX),
    Kind.FLOAT: st.floats(width=32, allow_nan=False),
    Kind.DOUBLE: st.floats(allow_nan=False),
    Kind.BYTES: st.binary(max_size=20),
    Kind.STRING: st.text(max_size=20),
}


def _moments(logical: Logical) -> st.SearchStrategy[datetime]:
    zone = UTC if logical.value.startswith("timestamp") else None
    unit = 1000 if logical.value.endswith("millis") else 1
    return st.datetimes().map(
        lambda moment: moment.replace(microsecond=moment.microsecond // unit * unit, tzinfo=zone)
    )


def values(  # noqa: PLR0911 - one return for each kind
    schema: AvroSchema, avro_type: AvroType | None = None
) -> st.SearchStrategy[Any]:
    """Python values of a schema, as `codec.decode` returns them."""
    resolved = schema.resolve(avro_type or schema.root)
    match resolved:
        case Primitive(logical=Logical.DECIMAL, precision=precision, scale=scale):
            limit = 10**precision - 1
            return st.integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-scale))
        case Primitive(logical=Logical() as logical):
            return _LOGICAL[logical] if logical in _LOGICAL else _moments(logical)
        case Primitive(kind):
            return _PLAIN[kind]
        case FixedType(size=size):
            return st.binary(min_size=size, max_size=size)
        case EnumType(symbols=symbols):
            return st.sampled_from(symbols)
        case ArrayType(items):
            return st.lists(values(schema, items), max_size=3)
        case MapType(inner):
            return st.dictionaries(st.text(max_size=5), values(schema, inner), max_size=3)
        case UnionType(branches):
            return st.one_of([values(schema, branch) for branch in branches])
        case RecordType(fields=fields):
            return st.fixed_dictionaries({f.name: values(schema, f.type) for f in fields})
