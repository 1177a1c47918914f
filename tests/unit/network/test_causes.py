"""Causes of failed evaluations, as far as they follow from the values."""

from typing import Any

import pytest

from pipeline.network.causes import cause


@pytest.mark.parametrize(
    ("text", "values", "told"),
    [
        ("a / b", {"a": 1, "b": 0}, "division by zero: b is 0"),
        ("a DIV b", {"a": 1, "b": 0}, "division by zero: b is 0"),
        ("a % (B)", {"a": 1, "b": 0}, "division by zero: (B) is 0"),
        ("1 + a / b", {"a": 1.5, "b": 0.0}, "division by zero: b is 0.0"),
        ("a / (b - c)", {"a": 1, "b": 7, "c": 7}, "division by zero: (b - c) is 0"),
        ("a / s.b > 1", {"a": 1, "s": {"b": 0}}, "division by zero: s.b is 0"),
        ("left.a / right.b", {"left": {"a": 1}, "right": {"b": 0}},
         "division by zero: right.b is 0"),
        ("a / b", {"left": {"a": 1}, "right": {"b": 0}}, "division by zero: b is 0"),
        ("100 / sum(v)", {"sensor": "s", "SUM(v)": 0}, "division by zero: SUM(v) is 0"),
        ("1 / count(*)", {"count(*)": 0}, "division by zero: COUNT(*) is 0"),
        ("sum(v)", {"sum(v)": None}, "overflow: the sum does not fit into its type"),
        ("CAST(t AS INT) + 1", {"t": "abc"}, "t is 'abc', which is no INT"),
        ("CAST(t AS DECIMAL(9, 2))", {"t": ""}, "t is '', which is no DECIMAL(9, 2)"),
    ],
)  # fmt: skip
def test_a_certain_cause_is_reported(text: str, values: dict[str, Any], told: str) -> None:
    """With the part of the expression that it is in, and its value."""
    assert cause(text, values).lower() == told.lower()


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a / b", {"a": 1, "b": 2}),
        ("a / b", {"a": None, "b": 0}),
        ("a / b", {"a": 1, "b": None}),
        ("a / b", {"a": 1}),
        ("CASE WHEN b <> 0 THEN a / b ELSE a * a END", {"a": 1, "b": 0}),
        ("coalesce(c, a / b)", {"a": 1, "b": 0, "c": 1}),
        ("a / (b - c)", {"a": 1, "b": 0.3, "c": 0.3}),
        ("a / b", {"left": {"a": 1, "b": 0}, "right": {"b": 1}}),
        ("a * b", {"a": 2**62, "b": 4}),
        ("max(v)", {"max(v)": None}),
        ("TRY_CAST(t AS INT) / b", {"t": "abc", "b": 1}),
        ("CAST(t AS INT)", {"t": "1 2"}),
        ("CAST(t AS DOUBLE)", {"t": "NaN"}),
        ("a / b AND", {"a": 1, "b": 0}),
        ("a / b", {"a": 1, "b": 0, "no name": 1}),
    ],
)
def test_an_uncertain_cause_is_not_guessed(text: str, values: dict[str, Any]) -> None:
    """Nulls, parts that may not be evaluated, fractions, types, and invalid expressions."""
    assert cause(text, values) == ""
