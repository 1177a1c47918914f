"""Column types in Arrow: the arguments and results of a function."""

from collections.abc import Mapping
from types import MappingProxyType

import pyarrow as pa

from pipeline.errors import BrokenInvariantError
from pipeline.network.types import (
    ArrayType,
    Columns,
    DataType,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)

SCALARS: Mapping[Scalar, pa.DataType] = MappingProxyType(
    {
        Scalar.BOOLEAN: pa.bool_(),
        Scalar.INT: pa.int32(),
        Scalar.LONG: pa.int64(),
        Scalar.FLOAT: pa.float32(),
        Scalar.DOUBLE: pa.float64(),
        Scalar.STRING: pa.string(),
        Scalar.BYTES: pa.binary(),
        Scalar.DATE: pa.date32(),
        Scalar.TIMESTAMP: pa.timestamp("us", tz="UTC"),
    }
)
"""The types that Spark passes to a function, and accepts from it."""


def arrow_type(data_type: DataType) -> pa.DataType:
    """A column's type in Arrow."""
    match data_type:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element, nullable):
            return pa.list_(pa.field("element", arrow_type(element), nullable=nullable))
        case MapType(value, nullable):
            return pa.map_(pa.string(), pa.field("value", arrow_type(value), nullable=nullable))
        case StructType(_, fields):
            return pa.struct(list(arrow_schema(fields)))
        case Scalar() if data_type in SCALARS:
            return SCALARS[data_type]
    raise BrokenInvariantError(f"a column cannot have the type {data_type}")


def arrow_schema(columns: Columns) -> pa.Schema:
    """The schema of a batch with these columns."""
    return pa.schema([pa.field(c.name, arrow_type(c.type), nullable=c.nullable) for c in columns])
