import json

import pytest

from schemas.avro import parse
from schemas.compatibility import Level, differences
from schemas.registry import judge
from schemas.registry.config import Config
from schemas.registry.content import Content
from schemas.registry.judge import SHOWN_MAX, Candidate, problems
from schemas.registry.metadata import Metadata
from tests.unit.schemas.registry.making import INT, LONG, STRING, record


def _of(text: str, number: int = 0, *, reserved: str = "", major: str = "") -> Candidate:
    schema = parse(text)
    given = (("confluent:reserved", reserved), ("major", major))
    metadata = Metadata((), tuple((name, value) for name, value in given if value))
    return Candidate(Content(schema.text, (), metadata), schema, number)


def _told(level: Level, new: str, *old: str) -> tuple[str, ...]:
    before = [_of(text, number) for number, text in enumerate(old, 1)]
    return problems(Config(level=level), _of(new), before)


TYPE = (
    "{{errorType:'TYPE_MISMATCH', description:'The type (path '/') of a field in the {0} schema "
    "does not match with the {1} schema', additionalInfo:'reader type: {2} not compatible with "
    "writer type: {3}"
)


def test_results_are_cached_without_the_schemas() -> None:
    """Far more pairs than schemas could be kept: those would fill the memory."""
    before = differences.cache_info()
    texts = [record("R", f"a{number}=") for number in range(400)]
    assert not _told(Level.FULL_TRANSITIVE, record("R"), *texts)
    assert differences.cache_info() == before
    reader, writer = parse(record("R", "needed")), parse(record("R"))
    found = judge._compared(reader, writer)
    assert len(found) == 1
    assert judge._compared(reader, writer) is found


def test_backward_reads_old_records_with_the_new_schema() -> None:
    """Every difference, then the version, its text and the configuration."""
    found = _told(Level.BACKWARD, STRING, LONG, INT)
    assert found[0].startswith(TYPE.format("new", "old", "STRING", "INT"))
    assert found[1:] == (
        "{oldSchemaVersion: 2}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'false', compatibility: 'BACKWARD'}",
    )


def test_forward_reads_new_records_with_the_old_schema() -> None:
    """The roles in the messages are exchanged."""
    found = _told(Level.FORWARD, LONG, INT)
    assert found[0].startswith(TYPE.format("old", "new", "INT", "LONG"))
    assert len(found) == 4


def test_full_reports_both_directions() -> None:
    """Incompatibilities of the old reader come first."""
    found = _told(Level.FULL, STRING, INT)
    assert found[0].startswith(TYPE.format("old", "new", "INT", "STRING"))
    assert found[1].startswith(TYPE.format("new", "old", "STRING", "INT"))
    assert found[2:] == (
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{validateFields: 'false', compatibility: 'FULL'}",
    )


@pytest.mark.parametrize(
    ("level", "old", "version"),
    [
        (Level.BACKWARD, (STRING, INT), None),
        (Level.BACKWARD_TRANSITIVE, (STRING, INT), 1),
        (Level.BACKWARD_TRANSITIVE, (STRING, STRING, INT), 2),
        (Level.FORWARD, (STRING, LONG), None),
        (Level.FORWARD_TRANSITIVE, (STRING, LONG), 1),
        (Level.FULL_TRANSITIVE, (INT, LONG), 1),
        (Level.NONE, (STRING,), None),
        (Level.FULL_TRANSITIVE, (), None),
    ],
)
def test_a_level_selects_the_compared_versions(
    level: Level, old: tuple[str, ...], version: int | None
) -> None:
    """The newest, or all from the newest on, until one does not fit."""
    found = _told(level, LONG, *old)
    which = [one for one in found if one.startswith("{oldSchemaVersion")]
    assert which == ([] if version is None else [f"{{oldSchemaVersion: {version}}}"])


REMOVED = (
    "The new schema has reserved field {} removed from its metadata which is present in the old "
    "schema's metadata."
)
WORDS = {
    "FIXED_SIZE_MISMATCH": "The size of FIXED type field at path '/size' in the new schema does "
    "not match with the old schema",
    "NAME_MISMATCH": "The name of the schema has changed (path '/name')",
    "MISSING_ENUM_SYMBOLS": "The new schema is missing enum symbols '[B, C]' at path '/symbols' in "
    "the old schema",
    "MISSING_UNION_BRANCH": "The new schema is missing a type inside a union field at path '/1' in "
    "the old schema",
    "READER_FIELD_MISSING_DEFAULT_VALUE": "The field 'b' at path '/fields/1' in the new schema has "
    "no default value and is missing in the old schema",
}


@pytest.mark.parametrize(
    ("reason", "new", "old", "detail"),
    [
        (
            "FIXED_SIZE_MISMATCH",
            '{"type":"fixed","name":"F","size":2}',
            '{"type":"fixed","name":"F","size":1}',
            "expected: 1, found: 2",
        ),
        ("NAME_MISMATCH", record("B"), record("A"), "expected: A"),
        (
            "MISSING_ENUM_SYMBOLS",
            '{"type":"enum","name":"E","symbols":["A"]}',
            '{"type":"enum","name":"E","symbols":["A","B","C"]}',
            "[B, C]",
        ),
        (
            "MISSING_UNION_BRANCH",
            '["null","string"]',
            '["null","int"]',
            "reader union lacking writer type: INT",
        ),
        ("READER_FIELD_MISSING_DEFAULT_VALUE", record("R", "a", "b"), record("R", "a"), "b"),
    ],
)
def test_every_reason_has_a_message(reason: str, new: str, old: str, detail: str) -> None:
    """That of other registries."""
    expected = f"{{errorType:'{reason}', description:'{WORDS[reason]}', additionalInfo:'{detail}'}}"
    assert _told(Level.BACKWARD, new, old)[0] == expected


def test_a_long_text_is_truncated() -> None:
    """A response stays readable."""
    old = json.dumps({"type": "int", "p": "x" * SHOWN_MAX}, separators=(",", ":"))
    found = _told(Level.BACKWARD, STRING, old)
    assert found[2] == f"{{oldSchema: <truncated> '{old[:SHOWN_MAX]}...'}}"


def test_only_versions_of_the_group_are_compared() -> None:
    """The absence of the property is a group, too."""
    config = Config(level=Level.BACKWARD, group="major")
    before = [_of(STRING, 1), _of(INT, 2, major="1"), _of(record(), 3, major="2")]
    assert problems(config, _of(LONG, major="1"), before) == ()
    assert problems(config, _of(LONG, major="3"), before) == ()
    assert "{oldSchemaVersion: 3}" in problems(config, _of(LONG, major="2"), before)
    assert "{oldSchemaVersion: 1}" in problems(config, _of(LONG), before)


def test_reserved_fields_stay_reserved_and_unused() -> None:
    """When fields are validated; at any level."""
    old = _of(record("R", "a"), 1, reserved="b,c")
    new = _of(record("R", "a", "c="), reserved="c")
    assert problems(Config(level=Level.NONE, validate_fields=True), new, [old]) == (
        REMOVED.format("b"),
        "The new schema has field that conflicts with the reserved field c.",
        "{validateFields: 'true', compatibility: 'NONE'}",
    )
    assert problems(Config(level=Level.NONE), new, [old]) == ()
    assert problems(Config(level=Level.NONE, validate_fields=True), new, []) == (
        "The new schema has field that conflicts with the reserved field c.",
        "{validateFields: 'true', compatibility: 'NONE'}",
    )
