import hashlib
from uuid import UUID

import pytest

from schemas.registry.content import (
    Content,
    Reference,
    content_json,
    guid_in,
    guid_of,
    kept,
    normal_references,
    with_version,
)
from schemas.registry.metadata import Metadata, Rule, RuleSet
from schemas.registry.refused import BadSchemaError

USER = (
    '{"type":"record","name":"User","namespace":"com.github.louislef299.events.avro","fields":['
    '{"name":"id","type":"int"},{"name":"name","type":"string"},'
    '{"name":"email","type":["null","string"],"default":null}]}'
)
GUID = "095d71cf-1255-6b9d-5e33-0ad575b3df5d"


def test_guids_are_those_of_other_registries() -> None:
    """Expected GUIDs of given texts."""
    assert guid_of(Content('"string"')) == GUID
    assert guid_of(Content(USER)) == "4bd2bf79-95af-aace-ebad-18dfd323a304"


def test_a_guid_includes_all_parts() -> None:
    """References with their version as four bytes, metadata, rules; empty is not absent."""
    rules = RuleSet(((), (Rule("r", type="T"),), ()))
    metadata = Metadata((), (("k", "v"),))
    content = Content('"int"', (Reference("n", "s", 258),), metadata, rules)
    made = b'"int"ns\x00\x00\x01\x02\x01kv\x01rTRANSFORMWRITEREADT'
    assert guid_of(content) == str(UUID(bytes=hashlib.md5(made, usedforsecurity=False).digest()))
    assert len({guid_of(Content('"int"', (), m)) for m in (None, Metadata(), metadata)}) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (GUID, GUID),
        (GUID.upper(), GUID),
        (GUID.replace("-", ""), GUID),
        ("", None),
        (GUID[1:], None),
        ("x" * 32, None),
    ],
)
def test_a_guid_is_parsed_with_or_without_dashes(text: str, found: str | None) -> None:
    """In upper and lower case."""
    assert guid_in(text) == found


def test_an_invalid_schema_is_reported_with_its_place() -> None:
    """The detail is at the end."""
    text = '{"type":"record","name":"R","fields":[{"name":"a","type":"Nothing"}]}'
    with pytest.raises(
        BadSchemaError, match=r"Invalid schema of type AVRO, details: .* at /fields"
    ):
        kept(text, (), normal=False)


def test_the_stored_text() -> None:
    """As Java prints it, or normalised."""
    text = ' {"type": "string", "b": 1, "a": 2} '
    assert kept(text, (), normal=False)[0] == '{"type":"string","b":1,"a":2}'
    assert kept(text, (), normal=True)[0] == '{"type":"string","a":2,"b":1}'


@pytest.mark.parametrize("normal", [False, True])
def test_the_nesting_of_a_text_is_limited(normal: bool) -> None:  # noqa: FBT001 - of the table
    """For any content: it is walked repeatedly."""

    def nested(depth: int) -> str:
        return '{"type":"int","p":' + '{"q":[' * depth + "]}" * depth + "}"

    assert kept(nested(32), (), normal=normal)[0] == nested(32)
    for depth in (128, 400, 100_000):
        with pytest.raises(BadSchemaError):
            kept(nested(depth), (), normal=normal)


def test_normal_references_are_sorted_and_unique() -> None:
    """By subject and version."""
    given = [Reference("b", "s", 2), Reference("a", "s", 2), Reference("c", "s", 1)]
    assert normal_references([*given, given[0]]) == (given[2], given[1], given[0])


def test_a_content_as_json_omits_empty_parts() -> None:
    """Metadata that are present and empty stay."""
    assert content_json(Content('"int"')) == {"schema": '"int"'}
    whole = Content('"int"', (Reference("n", "s", 1),), Metadata(), RuleSet())
    assert content_json(whole) == {
        "references": [{"name": "n", "subject": "s", "version": 1}],
        "metadata": {},
        "ruleSet": {},
        "schema": '"int"',
    }
    assert str(whole.references[0]) == "{name='n', subject='s', version=1}"


def test_the_version_property_is_added_and_removed() -> None:
    """Other properties stay."""
    plain = Content('"int"')
    assert with_version(plain, None) == plain
    versioned = with_version(plain, 3)
    assert versioned.metadata == Metadata((), (("confluent:version", "3"),))
    assert with_version(versioned, None).metadata == Metadata()
