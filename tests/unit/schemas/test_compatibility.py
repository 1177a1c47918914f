import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.compatibility import (
    DIFFERENCES_MAX,
    Level,
    Reason,
    check,
    differences,
    is_transitive,
)
from tests.unit.schemas.strategies import schemas

VECTORS = Path(__file__).parents[2] / "data" / "avro_compat_vectors.json"
CASES: list[dict[str, Any]] = json.loads(VECTORS.read_text(encoding="utf-8"))


def _r(*fields: dict[str, Any], name: str = "R") -> AvroSchema:
    return parse(json.dumps({"type": "record", "name": name, "fields": list(fields)}))


A = _r({"name": "a", "type": "int"})
A_LONG = _r({"name": "a", "type": "long"})
AB = _r({"name": "a", "type": "int"}, {"name": "b", "type": "int"})
AB_DEFAULT = _r({"name": "a", "type": "int"}, {"name": "b", "type": "int", "default": 0})


@pytest.mark.parametrize("group", sorted({case["group"] for case in CASES}))
def test_agrees_with_java_avro(group: str) -> None:
    """Result, reasons and places are Java Avro's for every pair of the group."""
    wrong = []
    for case in (case for case in CASES if case["group"] == group):
        found = differences(parse(json.dumps(case["reader"])), parse(json.dumps(case["writer"])))
        reasons = sorted([d.reason.value, d.location] for d in found)
        result = "INCOMPATIBLE" if found else "COMPATIBLE"
        if result != case["result"] or reasons != sorted(case["why"]):
            wrong.append((case, reasons))
    assert wrong == []


def test_vectors_contain_both_results() -> None:
    """Compatible and incompatible pairs, many of each."""
    assert len(CASES) == 1185
    assert {case["result"] for case in CASES} == {"COMPATIBLE", "INCOMPATIBLE"}


@given(schemas())
def test_every_schema_reads_itself(schema: AvroSchema) -> None:
    """A reader fits the same writer, also when it was parsed separately."""
    assert not differences(schema, parse(" " + schema.text))


def test_messages_contain_the_path_and_both_types() -> None:
    """They identify the field and both types."""
    (found,) = differences(A, A_LONG)
    assert found.reason is Reason.TYPE_MISMATCH
    assert str(found) == (
        "/fields/a/type: the reader's int cannot read the writer's long (TYPE_MISMATCH)"
    )
    (found,) = differences(AB, A)
    assert found.path == "/fields/b"
    assert "field b of type int is not in the writer's record R" in found.message


def test_a_union_reports_its_nearest_branch() -> None:
    """An incompatible record inside an optional field has its own reasons."""
    old, new = ({"name": "x", "type": ["null", json.loads(s.text)]} for s in (A, AB))
    (found,) = differences(_r(new, name="Out"), _r(old, name="Out"))
    assert found.reason is Reason.MISSING_UNION_BRANCH
    assert found.location == "/fields/0/type/1"
    assert "field b" in found.message


def test_recursive_types_end() -> None:
    """A type that contains itself is compared once, and an incompatibility in it is found."""

    def node(kind: str) -> AvroSchema:
        return _r(
            {"name": "v", "type": kind}, {"name": "next", "type": ["null", "R"], "default": None}
        )

    assert not differences(node("long"), node("int"))
    found = differences(node("int"), node("long"))
    assert [d.location for d in found if d.reason is Reason.TYPE_MISMATCH] == ["/fields/0/type"]


def test_results_that_depend_on_a_refuted_assumption_are_recomputed() -> None:
    """B fits only if A does; A does not fit, so a later use of B must be refused."""

    def schema(kind: str) -> AvroSchema:
        inner = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "A"]}]}
        fields = [{"name": "b", "type": inner}, {"name": "x", "type": kind}]
        outer = {"type": "record", "name": "A", "fields": fields}
        return parse(
            json.dumps(
                {
                    "type": "record",
                    "name": "Top",
                    "fields": [
                        {"name": "u", "type": [outer, "string"]},
                        {"name": "b", "type": "B"},
                    ],
                }
            )
        )

    def reader() -> AvroSchema:
        inner = {"type": "record", "name": "B", "fields": [{"name": "a", "type": ["null", "A"]}]}
        fields = [{"name": "b", "type": inner}, {"name": "x", "type": "int"}]
        outer = {"type": "record", "name": "A", "fields": fields}
        any_record = {"type": "record", "name": "Any", "aliases": ["A"], "fields": []}
        return parse(
            json.dumps(
                {
                    "type": "record",
                    "name": "Top",
                    "fields": [
                        {"name": "u", "type": [outer, any_record, "string"]},
                        {"name": "b", "type": "B"},
                    ],
                }
            )
        )

    assert not differences(reader(), schema("int"))
    places = [found.path for found in differences(reader(), schema("long"))]
    assert any(place.startswith("/fields/b/") for place in places)
    assert not any(place.startswith("/fields/u/") for place in places)


def test_many_uses_of_one_type_stay_fast() -> None:
    """Each pair of types is compared once, however often it is used."""
    value: Any = {"type": "record", "name": "R0", "fields": [{"name": "a", "type": "int"}]}
    for number in range(1, 30):
        fields = [{"name": "a", "type": value}, {"name": "b", "type": f"R{number - 1}"}]
        value = {"type": "record", "name": f"R{number}", "fields": fields}
    text = json.dumps(value)
    assert not differences(parse(text), parse(" " + text))


@pytest.mark.parametrize(
    ("level", "new", "old", "fits"),
    [
        (Level.NONE, A, parse('"string"'), True),
        (Level.BACKWARD, A, AB, True),
        (Level.BACKWARD, AB, A, False),
        (Level.FORWARD, AB, A, True),
        (Level.FORWARD, A, AB, False),
        (Level.FULL, AB_DEFAULT, A, True),
        (Level.FULL, AB, A, False),
        (Level.FULL, A, AB, False),
        (Level.BACKWARD, A_LONG, A, True),
        (Level.FULL, A_LONG, A, False),
    ],
)
def test_levels(level: Level, new: AvroSchema, old: AvroSchema, fits: bool) -> None:  # noqa: FBT001 - a column
    """Each level compares in its own direction."""
    assert (check(level, new, [old]) == ()) is fits


@pytest.mark.parametrize("level", list(Level))
def test_transitive_levels_compare_all_versions(level: Level) -> None:
    """Only a transitive level compares a version before the latest."""
    reasons = check(level, A, [parse('"string"'), A])
    assert bool(reasons) is is_transitive(level)
    if reasons:
        assert "1 before the latest" in reasons[0]


def test_the_first_version_always_fits() -> None:
    """Without previous versions there is nothing to compare."""
    assert all(check(level, A, []) == () for level in Level)


def _ladder(leaf: str) -> str:
    """Forty records inside each other; each is used twice."""
    inner: object = leaf
    for step in range(40, -1, -1):
        again = f"L{step + 1}" if step < 40 else leaf
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": again}]
        inner = {"type": "record", "name": f"L{step}", "fields": fields}
    return json.dumps(inner)


def test_repeatedly_used_types_have_a_hundred_differences() -> None:
    """There would be two to the power of forty."""
    found = differences(parse(_ladder("int")), parse(_ladder("string")))
    assert len(found) == DIFFERENCES_MAX
    assert differences(parse(_ladder("int")), parse(_ladder("string")))


def test_unions_of_thousands_are_not_compared() -> None:
    """Each branch of one with each of the other would take hours."""

    def union(field: str) -> AvroSchema:
        inner = [{"name": field, "type": "int"}]
        return parse(
            json.dumps([{"type": "record", "name": f"R{n}", "fields": inner} for n in range(400)])
        )

    with pytest.raises(SchemaError, match="pairs of types"):
        differences(union("a"), union("b"))
