"""Expressions without Spark, compared with what Spark made of them.

`tests/data/network/evaluated.json` has Spark's results, on rows full of extremes; a system test
compares it with Spark. Here the same rows are computed in Python.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.network.evaluating.calls import CALLS
from pipeline.network.evaluating.comparing import equal
from pipeline.network.evaluating.evaluate import Computation, computation
from pipeline.network.evaluating.failing import LeftToSparkError, RowFailedError
from pipeline.network.evaluating.numbers import single
from pipeline.network.evaluating.special import SPECIAL
from pipeline.network.scope import Scope, Source
from pipeline.network.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    Scalar,
    StructType,
)
from tests.expression_columns import COLUMNS

RECORDED: Mapping[str, list[str | bool | None]] = json.loads(
    (Path(__file__).parents[3] / "data" / "network" / "evaluated.json").read_text(encoding="utf-8")
)
SCOPE = Scope((Source(COLUMNS),))
LONG_MAX = 2**63 - 1
WIDE = Context(prec=60)
FAILED, LEFT = object(), object()


def _row(*values: Any) -> dict[str, Any]:
    found = {column.name: value for column, value in zip(COLUMNS, values, strict=True)}
    for name, scale in (("n", 2), ("m", 10)):
        if found[name] is not None:
            found[name] = Decimal(found[name]).quantize(Decimal(1).scaleb(-scale), context=WIDE)
    return found


ROWS = (
    _row(1, 2, 3, 1.5, 2.5, 1.0, "1.25", "3.5", True, "12", "ab", b"\x01", 19782,
         1709201472345678, [1, 2, None], {"a": 1}, {"a": 1, "s": "x"}),
    _row(0, 0, 0, 0.0, 0.0, 0.0, 0, 0, False, "", "", b"", 0, 0, [], {}, {"a": None, "s": ""}),
    _row(-(2**31), 2**31 - 1, -(2**63), math.nan, math.nan, 1e18, "99999999.99",
         "9999999999999999999999999999.9999999999", None, "x1", "ÄÖ😀", b"\xff\x00", 2**31 - 1,
         LONG_MAX, [None], {"b": None}, {"a": -(2**31), "s": "y"}),
    _row(2**31 - 1, -(2**31), LONG_MAX, -math.inf, -math.inf, 1e300, "-99999999.99",
         "-9999999999999999999999999999.9999999999", True, "2024-01-31 12:00:00", "a,b,c",
         b"\xc3\x28", -(2**31), -(2**63), [5, 6, 7], {"a": 5, "b": 6}, {"a": 7, "s": "z"}),
    _row(None, 1, None, None, None, -1.5, None, None, None, None, "99999999999", None, None, None,
         None, None, None),
    _row(7, -1, -1, single(3.4e38), 1e18, 1e17, "-0.01", "0.0000000001", False, "1e3",
         "2024-01-31", b"\x00", -719162, -62135596800000000, [1], {"ab": 9}, {"a": 7, "s": "z"}),
    _row(-5, 3, 5, -2.5, -2.5, 0.5, "12.34", "100000.5", True, "true", "Hello World", b"\x61",
         2932896, 253402300799999999, [3, 2, 1], {"x": 1}, {"a": 3, "s": "q"}),
)  # fmt: skip
"""The rows of the system test."""


def good(text: str) -> Computation:
    """The compiled evaluator of a text."""
    found = computation(text, SCOPE)
    assert isinstance(found, Computation), f"{text}: {found}"
    return found


READ: Mapping[DataType, Callable[[str], Any]] = {
    **dict.fromkeys((Scalar.INT, Scalar.LONG, Scalar.TIMESTAMP, Scalar.DATE), int),
    Scalar.FLOAT: lambda text: single(float(text)),
    Scalar.DOUBLE: float,
    Scalar.BOOLEAN: "true".__eq__,
    Scalar.BYTES: bytes.fromhex,
    Scalar.STRING: str,
}


def value_of(recorded: str, data_type: DataType) -> Any:
    """The value that Spark wrote."""
    if isinstance(data_type, DecimalType):
        return Decimal(recorded)
    if isinstance(data_type, ArrayType | MapType | StructType):
        return without_nulls(json.loads(recorded).get("v"))
    return READ[data_type](recorded)


def without_nulls(value: Any) -> Any:
    """The JSON form in which Spark writes records and maps."""
    if isinstance(value, dict):
        return {name: part for name, part in value.items() if part is not None}
    return value


def supported() -> list[str]:
    """The recorded texts that are supported here."""
    return [text for text in RECORDED if isinstance(computation(text, SCOPE), Computation)]


def outcome(ours: Computation, row: Mapping[str, Any]) -> Any:
    """The value, or the failure, or that only Spark computes it."""
    try:
        return ours.compute(row)
    except RowFailedError:
        return FAILED
    except LeftToSparkError:
        return LEFT


@pytest.mark.parametrize("text", supported())
def test_results_are_those_of_spark(text: str) -> None:
    """The value on each row, null, or a failure; the digits of a decimal, too."""
    ours = good(text)
    for number, (row, expected) in enumerate(zip(ROWS, RECORDED[text], strict=True)):
        found = outcome(ours, row)
        if found is LEFT:
            continue
        difference = f"{text}, row {number}: {found!r}, where Spark has {expected!r}"
        if expected is False or expected is None:
            assert found is (None if expected is None else FAILED), difference
            continue
        meant = value_of(str(expected), ours.expression.type)
        assert type(found) is type(meant), difference
        assert equal(without_nulls(found), meant), difference
        if isinstance(found, Decimal):
            assert str(found) == str(meant), difference


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("u RLIKE 'a+'", "RLIKE is not computed here"),
        ("hash(i) = 1", "hash is not computed here"),
        ("CAST(t AS DOUBLE) > 1", "a cast of STRING to DOUBLE is not computed here"),
        ("date_trunc('month', at) = at", "date_trunc('month', …) is not computed here"),
        ("spede > 1", "there is no column spede"),
        ("i +", "the expression does not parse"),
    ],
)
def test_unsupported_expressions_are_refused_before_a_row_is_read(text: str, why: str) -> None:
    """And so are those that a box would refuse."""
    found = computation(text, SCOPE)
    assert isinstance(found, tuple)
    assert why in found[0].message


def test_rare_values_are_left_to_spark() -> None:
    """Where Python could have another result, there is none, in any surrounding expression."""
    with pytest.raises(LeftToSparkError, match="only a box computes this"):
        good("coalesce(lower('Σ'), 'x')").compute(ROWS[0])


def test_a_condition_must_be_boolean() -> None:
    """`wants` is the parameter of `check`."""
    found = computation("i + 1", SCOPE, wants=Scalar.BOOLEAN)
    assert isinstance(found, tuple)
    assert "needs a condition" in found[0].message


def test_the_reference_lists_the_supported_functions() -> None:
    """The functions between the marks are the implemented ones."""
    page = (Path(__file__).parents[4] / "docs" / "reference" / "expressions.md").read_text("utf-8")
    listed = page.partition("<!-- without a box: begin -->")[2].partition("<!-- without a box")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted({*CALLS, *SPECIAL})


def test_most_of_the_language_is_supported() -> None:
    """So that no function is dropped by accident."""
    assert len(supported()) > 500
