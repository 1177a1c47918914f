from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pipeline.network import type_text
from pipeline.user_code.arrow import arrow_schema
from pipeline.user_code.contract import ROW, ContractError, fitted

NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)


def declared(**columns: str) -> pa.Schema:
    """The declared columns."""
    return arrow_schema(tuple(type_text.read_column(n, t) for n, t in columns.items()))


def batch(**columns: Any) -> pa.RecordBatch:
    """The batch that a function returned."""
    return pa.record_batch(columns)


def test_columns_are_matched_by_name() -> None:
    """In the declared order, with the declared types."""
    made = fitted(batch(b=["x"], a=[1]), 1, declared(a="INT NOT NULL", b="STRING"))
    assert made.schema.names == ["a", "b"]
    assert made.schema.field("a").type == pa.int32()
    assert made.to_pylist() == [{"a": 1, "b": "x"}]


@pytest.mark.parametrize(
    ("found", "text", "value"),
    [
        (pa.array([1, None], pa.int64()), "INT", 1),
        (pa.array([1.5, None], pa.float32()), "DOUBLE", 1.5),
        (pa.array([None, None], pa.null()), "STRUCT<a: INT>", None),
        (pa.array(["x", None], pa.large_string()), "STRING", "x"),
        (pa.array(["x", None], pa.dictionary(pa.int32(), pa.string())), "STRING", "x"),
        (pa.array([b"x", None], pa.binary()), "BINARY", b"x"),
        (pa.array([date(2024, 1, 31), None], pa.date32()), "DATE", date(2024, 1, 31)),
        (pa.array([NOON, None], pa.timestamp("ms", tz="Europe/Berlin")), "TIMESTAMP", NOON),
        (pa.array([Decimal("1.5"), None], pa.decimal128(5, 1)), "DECIMAL(10,2)", Decimal("1.50")),
        (pa.array([[1], None], pa.list_(pa.int64())), "ARRAY<INT NOT NULL>", [1]),
        (
            pa.array([{"a": 1}, None], pa.struct([pa.field("a", pa.int16())])),
            "STRUCT<a: INT NOT NULL>",
            {"a": 1},
        ),
        (
            pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())),
            "MAP<STRING, INT NOT NULL>",
            [("k", 1)],
        ),
    ],
)
def test_an_equivalent_type_is_accepted(found: pa.Array, text: str, value: object) -> None:
    """Wider, narrower or encoded in another way; null stays null."""
    (first, second) = fitted(batch(c=found), 2, declared(c=text)).column("c").to_pylist()
    assert (first, second) == (value, None)


@pytest.mark.parametrize(
    ("found", "text", "problem"),
    [
        (pa.array(["1"]), "INT", "column c is string, not int32"),
        (pa.array([1]), "DOUBLE", "column c is int64, not double"),
        (pa.array([2**40]), "INT", "column c: Integer value 1099511627776 not in range"),
        (pa.array([NOON.replace(tzinfo=None)]), "TIMESTAMP", "column c is timestamp[us], not"),
        (pa.array([1, None]), "INT NOT NULL", "column c is null, and declared NOT NULL"),
        (pa.array([[1, None]]), "ARRAY<INT NOT NULL>", "c.element is null, and declared NOT NULL"),
        (
            pa.array([{"a": None}], pa.struct([pa.field("a", pa.int32())])),
            "STRUCT<a: INT NOT NULL>",
            "column c: field 'a' of type int32 has nulls",
        ),
        (
            pa.array([[("k", None)]], pa.map_(pa.string(), pa.int32())),
            "MAP<STRING, INT NOT NULL>",
            "c.value is null, and declared NOT NULL",
        ),
        (
            pa.array([{"b": 1}], pa.struct([pa.field("b", pa.int32())])),
            "STRUCT<a: INT>",
            "column c is struct<b: int32>, not struct<a: int32>",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_reported(found: pa.Array, text: str, problem: str) -> None:
    """By column, at any depth; no value is converted."""
    with pytest.raises(ContractError) as caught:
        fitted(batch(c=found), len(found), declared(c=text))
    assert problem in str(caught.value)


def test_a_slice_is_checked_alone() -> None:
    """A null outside of a slice is no error."""
    column = pa.array([[("k", None)], [("k", 1)]], pa.map_(pa.string(), pa.int32()))
    made = fitted(batch(c=column).slice(1), 1, declared(c="MAP<STRING, INT NOT NULL>"))
    assert made.column("c").to_pylist() == [[("k", 1)]]


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (None, "it returned a builtins.NoneType, not a pyarrow.RecordBatch"),
        (pa.table({"c": pa.array([1])}), "it returned a pyarrow.lib.Table, not a"),
        (batch(d=[1]), "it returned no column c, only d"),
        (batch(c=[1], d=[1]), "it returned a column d, which is not declared"),
        (batch(c=[1]), "it returned 1 rows for 3, without a column __row that tells"),
        (batch(c=[1], __row=["0"]), "__row is string, not whole numbers"),
        (
            batch(c=pa.array([], pa.int32()), __row=pa.array([], pa.string())),
            "__row is string, not",
        ),
        (batch(c=[1], __row=pa.array([None], pa.int32())), "__row is null"),
        (batch(c=[1], __row=[3]), "__row is 3, of 3 rows from 0 on"),
        (batch(c=[1], __row=[-1]), "__row is -1, of 3 rows from 0 on"),
        (batch(c=[1, 1], __row=[1, 1]), "__row does not rise"),
        (batch(c=[1, 1], __row=[1, 0]), "__row does not rise"),
    ],
)
def test_violations_of_the_contract_are_reported(returned: object, problem: str) -> None:
    """Kind, columns, number of rows, and the indices of their inputs."""
    with pytest.raises(ContractError) as caught:
        fitted(returned, 3, declared(c="INT"))
    assert problem in str(caught.value)


@pytest.mark.parametrize("rows", [[], [1], [0, 2]])
def test_a_function_may_drop_rows(rows: list[int]) -> None:
    """It returns the indices of the kept ones."""
    columns: Mapping[str, Any] = {"c": pa.array(rows, pa.int32()), ROW: pa.array(rows, pa.int64())}
    made = fitted(batch(**columns), 3, declared(c="INT"))
    assert made.column(ROW).to_pylist() == rows
