import json

import pytest
from hypothesis import given

from schemas.avro import AvroSchema, parse
from schemas.candidates import candidates
from schemas.canonical import content_key
from schemas.changes import changes
from schemas.compatibility import Level, check, differences
from schemas.evolution import Verdict, evolution, grouped, kept
from tests.unit.schemas.strategies import schemas

SENSOR = parse(
    json.dumps(
        {
            "type": "record",
            "name": "Measured",
            "namespace": "sensors",
            "fields": [
                {"name": "celsius", "type": "float"},
                {"name": "count", "type": "long", "default": 0},
                {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
                {"name": "note", "type": ["null", "string"], "default": None},
                {
                    "name": "state",
                    "type": {"type": "enum", "name": "State", "symbols": ["ON", "OFF"]},
                },
            ],
        }
    )
)
BARE = {"name": "new_field", "type": "string"}
NEW = {**BARE, "default": ""}


def by_text(level: Level, *versions: AvroSchema) -> dict[str, Verdict]:
    """The results of the candidates, by their text."""
    return {one.change.words: one for one in evolution(level, versions)}


@pytest.mark.parametrize(
    ("words", "backward", "forward"),
    [
        ("widen celsius from float to double", True, False),
        ("narrow count from long to int", False, True),
        ("remove count", True, True),
        ("remove celsius", True, False),
        (f"add to Measured a field with a default: {json.dumps(NEW)}", True, True),
        (f"add to Measured a field without a default: {json.dumps(BARE)}", False, True),
        ("rename celsius and keep the name as an alias", True, False),
        ("rename celsius without an alias", False, False),
        ("allow null for celsius", True, False),
        ("allow null for note no more, and take its default away", False, True),
        ("add a symbol to state", True, False),
        ("remove OFF from state", False, True),
        ("make celsius string instead of float", False, False),
        ("give celsius the default 0.0", True, True),
        ("rename record Measured without an alias", False, False),
        ("put the fields of Measured in another order", True, True),
        ("change the documentation of Measured", True, True),
    ],
)
def test_compatibility_of_candidate_changes(words: str, backward: bool, forward: bool) -> None:  # noqa: FBT001 - a table
    """Each is named with the field's own name, with a result for each direction."""
    assert by_text(Level.BACKWARD, SENSOR)[words].allowed == backward
    found = by_text(Level.FORWARD, SENSOR)[words]
    assert found.allowed == forward
    assert bool(found.reasons) != forward


def test_allowed_changes_of_semantics_are_reported() -> None:
    """A registry accepts another unit of time; every time would be wrong."""
    found = by_text(Level.BACKWARD, SENSOR)["make at timestamp-micros instead of timestamp-millis"]
    assert found.allowed
    assert "/fields/at/type" in found.meanings[0]


def test_a_transitive_level_compares_all_versions() -> None:
    """A change allowed by the newest version may be forbidden by an older one."""
    first = parse('{"type":"record","name":"R","fields":[]}')
    second = parse('{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":1}]}')
    taken = "take the default 1 from a"
    assert by_text(Level.BACKWARD, first, second)[taken].allowed
    assert not by_text(Level.BACKWARD_TRANSITIVE, first, second)[taken].allowed
    assert all(one.allowed for one in evolution(Level.NONE, [first, second]))


def test_results_are_grouped() -> None:
    """The same kind of change is listed once for allowed, and once for forbidden fields."""
    groups = grouped(evolution(Level.FORWARD, [SENSOR]))
    removals = [one for one in groups if one.action == "remove a field"]
    assert [one.allowed for one in removals] == [True, False]
    assert [v.change.words for v in removals[0].verdicts] == ["remove count", "remove note"]
    assert [one.allowed for one in groups] == sorted((one.allowed for one in groups), reverse=True)


def test_a_change_keeps_levels() -> None:
    """Full is both of the others."""
    wider = parse(SENSOR.text.replace('"float"', '"double"'))
    found = kept(SENSOR, wider)
    assert not found[Level.BACKWARD]
    assert found[Level.FORWARD]
    assert found[Level.FULL] == found[Level.FORWARD]


@given(schemas())
def test_every_result_is_that_of_the_rules(schema: AvroSchema) -> None:
    """Allowed exactly where data can be read, and each candidate is a reported change."""
    for one in evolution(Level.FULL, [schema]):
        new = one.change.schema
        assert one.allowed == (not differences(new, schema) and not differences(schema, new))
        assert one.reasons == check(Level.FULL, new, [schema])
        assert content_key(new) != content_key(schema)
        assert changes(schema, new)


@given(schemas())
def test_texts_of_candidates_are_unique(schema: AvroSchema) -> None:
    """No two of one path are equal."""
    found = [(one.path, one.words) for one in candidates(schema)]
    assert len(set(found)) == len(found)
