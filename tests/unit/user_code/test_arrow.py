import pyarrow as pa
import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.network import type_text
from pipeline.network.types import Scalar
from pipeline.user_code.arrow import arrow_schema, arrow_type

TABLE = {
    "BOOLEAN": pa.bool_(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "ARRAY<INT>": pa.list_(pa.int32()),
    "ARRAY<INT NOT NULL>": pa.list_(pa.field("element", pa.int32(), nullable=False)),
    "MAP<STRING, DOUBLE>": pa.map_(pa.string(), pa.float64()),
    "STRUCT<a: INT, b: STRING NOT NULL>": pa.struct(
        [pa.field("a", pa.int32()), pa.field("b", pa.string(), nullable=False)]
    ),
}


@pytest.mark.parametrize("text", TABLE)
def test_each_type_has_an_arrow_type(text: str) -> None:
    """The table of the reference."""
    assert arrow_type(type_text.read(text)) == TABLE[text]


def test_nullable_columns_are_nullable_in_arrow() -> None:
    """Others are not."""
    columns = tuple(type_text.read_column(name, f"INT{name}") for name in (" ", " NOT NULL"))
    assert [field.nullable for field in arrow_schema(columns)] == [True, False]


def test_other_types_have_no_arrow_type() -> None:
    """For example intervals."""
    with pytest.raises(BrokenInvariantError, match="INTERVAL"):
        arrow_type(Scalar.INTERVAL)
