import json

import pytest
from fastavro.schema import fingerprint, to_parsing_canonical_form
from hypothesis import given

from schemas.avro import AvroSchema, parse
from schemas.canonical import canonical_form, content_key, crc_fingerprint, sha256_fingerprint
from tests.unit.schemas.strategies import schemas


@given(schemas())
def test_canonical_form_is_idempotent(schema: AvroSchema) -> None:
    """The canonical form of the canonical form is itself."""
    form = canonical_form(schema)
    assert canonical_form(parse(form)) == form


@given(schemas())
def test_fingerprints_agree_with_another_implementation(schema: AvroSchema) -> None:
    """Form, CRC-64-AVRO and SHA-256 are those of fastavro."""
    form = to_parsing_canonical_form(schema.value)
    assert canonical_form(schema) == form
    theirs = int.from_bytes(bytes.fromhex(fingerprint(form, "CRC-64-AVRO")), "little")
    assert crc_fingerprint(schema) == theirs
    assert sha256_fingerprint(schema) == fingerprint(form, "sha256")


def test_crc_of_the_specification() -> None:
    """The fingerprint of "null" that Java Avro computes."""
    assert crc_fingerprint(parse('"null"')) == 0x63DD24E7CC258F8A


SAME = [
    ('"int"', ' {"type" : "int"} '),
    (
        '{"type":"record","name":"a.R","fields":[{"name":"x","type":"int"}]}',
        '{"namespace":"a","fields":[{"type":{"type":"int"},"name":"x"}],"name":"R","type":"record"}',
    ),
    (
        '{"type":"record","name":"a.R","fields":[{"name":"n","type":["null","R"]}]}',
        '{"type":"record","name":"a.R","fields":[{"name":"n","type":["null","a.R"]}]}',
    ),
]
_PLAIN = '{"type":"record","name":"R","fields":[{"name":"x","type":"long"}]}'
DIFFERENT = [
    (_PLAIN, '{"type":"record","name":"R","doc":"d","fields":[{"name":"x","type":"long"}]}'),
    (_PLAIN, '{"type":"record","name":"R","fields":[{"name":"x","type":"long","default":1}]}'),
    (_PLAIN, '{"type":"record","name":"R","fields":[{"name":"x","type":"long","aliases":["y"]}]}'),
    (
        _PLAIN,
        _PLAIN.replace('"long"', '{"type":"long","logicalType":"timestamp-millis"}'),
    ),
    (_PLAIN, '{"type":"record","name":"R","namespace":"n","fields":[{"name":"x","type":"long"}]}'),
    ('["null","int"]', '["int","null"]'),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spelling_is_not_content(one: str, other: str) -> None:
    """White space, the order of keys and how a name is qualified make no other content."""
    assert content_key(parse(one)) == content_key(parse(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_all_that_was_meant_is_content(one: str, other: str) -> None:
    """Documentation, defaults, aliases, logical types and names make another content."""
    assert content_key(parse(one)) != content_key(parse(other))


@given(schemas())
def test_content_key_ignores_the_order_of_keys(schema: AvroSchema) -> None:
    """A schema written with sorted keys is the same content."""
    assert content_key(parse(json.dumps(schema.value, sort_keys=True))) == content_key(schema)
