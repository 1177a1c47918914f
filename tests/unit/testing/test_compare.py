import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.testing.compare import (
    Actual,
    Differences,
    Expected,
    as_json,
    compare,
    equal,
    in_words,
)
from schemas.json_value import Json, JsonObject

VALUES = st.fixed_dictionaries({"a": st.integers(0, 2), "b": st.sampled_from(["x", "y"])})


def expected(*records: Mapping[str, Any]) -> list[Expected]:
    """Records, each with a separate line."""
    return [Expected(r, dict(r), f"t.yaml:{line}") for line, r in enumerate(records, start=1)]


def actual(*records: Mapping[str, Any]) -> list[Actual]:
    """The actual records."""
    return [Actual(r, dict(r)) for r in records]


def test_equal_records_have_no_differences() -> None:
    """In any order, and with fields that are not expected."""
    found = compare(expected({"a": 1}, {"a": 2}), actual({"a": 2, "b": 0}, {"a": 1, "b": 0}))
    assert not found
    assert in_words(found) == ()


def test_a_nearly_equal_record_is_reported_field_by_field() -> None:
    """With both values, next to the actual record."""
    found = compare(expected({"car": "x", "toll": 2}), actual({"car": "x", "toll": 8}))
    (pair,) = found.different
    assert pair.fields == ("toll",)
    assert not found.missing
    assert not found.unexpected
    assert in_words(found)[1] == "  toll: expected 2, came 8"


def test_of_several_the_most_similar_is_reported() -> None:
    """The one with most equal fields; the others are unexpected."""
    rows = ({"a": 1, "b": 9, "c": 9}, {"a": 1, "b": 2, "c": 9})
    found = compare(expected({"a": 1, "b": 2, "c": 3}), actual(*rows))
    assert found.different[0].came.value == rows[1]
    assert [one.value for one in found.unexpected] == [rows[0]]


def test_records_without_equal_fields_are_missing_and_unexpected() -> None:
    """Such a pair would explain nothing."""
    found = compare(expected({"a": 1}), actual({"a": 2}))
    assert len(found.missing) == len(found.unexpected) == 1
    assert in_words(found) == ('t.yaml:1: missing {"a": 1}', 'unexpected {"a": 2}')


def test_a_missing_field_is_different() -> None:
    """Null was expected, and there is no such field: that is not equal."""
    found = compare(expected({"a": 1, "b": None}), actual({"a": 1}))
    assert in_words(found)[1] == "  b: expected null, came nothing"


def test_a_record_expected_twice_must_occur_twice() -> None:
    """Records are counted."""
    assert compare(expected({"a": 1}, {"a": 1}), actual({"a": 1})).missing
    assert compare(expected({"a": 1}), actual({"a": 1}, {"a": 1})).unexpected


def test_a_record_that_fits_several_takes_none_from_another() -> None:
    """The first one fits both, the second only one of them."""
    wide, narrow = {"a": 1}, {"a": 1, "b": "x"}
    rows = actual({"a": 1, "b": "x"}, {"a": 1, "b": "y"})
    assert not compare(expected(wide, narrow), rows)
    assert not compare(expected(narrow, wide), rows)


def test_order_counts_where_it_is_required() -> None:
    """The first record that precedes one expected before it is named."""
    rows = actual({"a": 2}, {"a": 1})
    assert not compare(expected({"a": 1}, {"a": 2}), rows)
    found = compare(expected({"a": 1}, {"a": 2}), rows, in_order=True)
    assert found.early is not None
    assert found.early.place == "t.yaml:2"
    assert "came too early" in in_words(found)[0]


def test_fractions_are_compared_with_a_tolerance() -> None:
    """NaN equals itself; other types never equal each other."""
    assert equal(0.1 + 0.2, 0.3)
    assert equal(math.nan, math.nan)
    assert not equal(1.0, 1.001)
    assert not equal(1, True)
    assert not equal("1", 1)
    nearly: JsonObject = {"a": [1.0 + 1e-12, None]}
    more: JsonObject = {"a": 1, "b": 2}
    longer: list[Json] = [1, 2]
    assert equal({"a": [1.0, None]}, nearly)
    assert not equal({"a": 1}, more)
    assert not equal([1], longer)


def test_many_differences_are_reported_in_part() -> None:
    """The output is bounded."""
    found = Differences(missing=tuple(expected(*({"a": n} for n in range(25)))))
    lines = in_words(found)
    assert len(lines) == 21
    assert lines[-1] == "and 5 more like the last one"


@given(st.lists(VALUES, max_size=8), st.randoms(use_true_random=False))
def test_records_in_any_order_with_fields_omitted_are_found(
    rows: list[dict[str, Any]], random: Any
) -> None:
    """For any omitted fields, and any expected order."""
    wanted = [{k: v for k, v in row.items() if random.random() < 0.6} for row in rows]
    random.shuffle(wanted)
    assert not compare(expected(*wanted), actual(*rows))


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_no_record_is_lost(wanted: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    """Each record is paired, or reported once."""
    found = compare(expected(*wanted), actual(*rows))
    pairs = len(wanted) - len(found.missing) - len(found.different)
    assert pairs == len(rows) - len(found.unexpected) - len(found.different)
    left = [one.fields for one in found.missing] + [one.expected.fields for one in found.different]
    over = [one.value for one in found.unexpected] + [one.came.value for one in found.different]
    assert not any(row in over for row in left)


def test_decimals_are_numbers_in_json() -> None:
    """`medusa test -o json` prints the expected values, and a document has decimals."""
    assert as_json({"a": Decimal("1.50"), "b": [Decimal(2), None]}) == {"a": 1.5, "b": [2.0, None]}
