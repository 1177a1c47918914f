import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from schemas.avro import parse
from schemas.registry.java_text import canonical_text, java_double, normal_text
from tests.unit.schemas.strategies import schema_values

TEXTS = Path(__file__).parents[3] / "data" / "java_avro_texts.json"
"""What Java Avro 1.12 makes of schemas; null: it refuses them."""
CASES: list[dict[str, str | None]] = json.loads(TEXTS.read_text(encoding="utf-8"))
STRICTER = (
    '"name": ".R"',
    '"namespace": null',
    '"aliases": ["x.b"]',
    '"aliases": ["1b"]',
    r'"doc":"\ud83d"',
    '"NaN"',
    '"Infinity"',
    '"symbols": ["A", "B"]}, "default": "C"',
    '"size": 2}, "default": "a"',
    "1e400",
    '"symbols": ["A"], "default": 5',
    '"name": "string", "namespace": "n"',
    '"name": "int", "namespace": "n"',
    '"name": "null", "namespace": "n"',
    '"name": "ä"',
    '"ä.b"',
    '{"type":"int","type":"string"}',
    '"p":1,"p":2',
    "/* c */",
)
"""What our parser refuses and Java takes: marks of the schemas."""


def _ours(text: str) -> str | None:
    try:
        return canonical_text(parse(text).value)
    except SchemaError:
        return None


def test_a_schema_prints_as_java_prints_it() -> None:
    """Every schema of the table that both accept has the same text; none is accepted only here."""
    wrong = []
    for case in CASES:
        text, java = str(case["schema"]), case["java"]
        stricter = any(mark in text for mark in STRICTER)
        if _ours(text) != (None if stricter else java):
            wrong.append((text, java, _ours(text)))
    assert wrong == []


def test_the_table_has_accepted_and_refused_schemas() -> None:
    """Many of each."""
    assert len([case for case in CASES if case["java"] is None]) > 50
    assert len([case for case in CASES if case["java"]]) > 150


@given(schema_values())
def test_normalisation_is_idempotent(value: object) -> None:
    """Both forms print as themselves again; the normal form is the same from either."""
    own = canonical_text(parse(json.dumps(value)).value)
    normal = normal_text(parse(own).value)
    assert canonical_text(parse(own).value) == own
    assert canonical_text(parse(normal).value) == normal == normal_text(parse(normal).value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"type":"int","b":1,"a":{"d":1,"c":2}}', '{"a":{"c":2,"d":1},"b":1,"type":"int"}'),
        (
            '{"type":"bytes","logicalType":"decimal","precision":4,"scale":0}',
            '{"type":"bytes","precision":4,"logicalType":"decimal"}',
        ),
        (
            '{"type":"record","name":"R","doc":"","aliases":["B","A"],"fields":[]}',
            '{"type":"record","name":"R","aliases":["A","B"],"fields":[]}',
        ),
        (
            '{"type":"record","name":"x.R","fields":[{"name":"a","type":"x.R","order":"ascending"}]}',
            '{"type":"record","name":"R","namespace":"x","fields":[{"name":"a","type":"R"}]}',
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"IGNORE"}]}',
            '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"ignore"}]}',
        ),
    ],
)
def test_schemas_with_equal_semantics_have_one_normal_form(one: str, other: str) -> None:
    """Notation is dropped, semantics stay."""
    assert normal_text(parse(one).value) == normal_text(parse(other).value)


@pytest.mark.parametrize(
    "text",
    [
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"d","default":1}]}',
        '{"type":"record","name":"R","fields":[{"name":"b","type":"int"},{"name":"a","type":"int"}]}',
        '{"type":"enum","name":"E","symbols":["B","A"],"default":"A"}',
        '["string","int"]',
    ],
)
def test_the_normal_form_keeps_semantic_parts(text: str) -> None:
    """Documentation, defaults, and the order of fields, symbols and branches."""
    assert normal_text(parse(text).value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (5e-324, "4.9E-324"),
        (1e23, "1.0E23"),
        (-1.25e-7, "-1.25E-7"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    """The limits of the plain form, and the shortest digits."""
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_preserved(value: float) -> None:
    """No digit is lost."""
    assert float(java_double(value)) == value
