import json

import pytest
from hypothesis import given

from schemas.avro import AvroSchema, parse
from schemas.canonical import content_key
from tests.unit.schemas.strategies import schemas

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
def test_notation_is_not_content(one: str, other: str) -> None:
    """White space, the order of keys and how a name is qualified make no other content."""
    assert content_key(parse(one)) == content_key(parse(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_all_semantic_parts_are_content(one: str, other: str) -> None:
    """Documentation, defaults, aliases, logical types and names make another content."""
    assert content_key(parse(one)) != content_key(parse(other))


@given(schemas())
def test_content_key_ignores_the_order_of_keys(schema: AvroSchema) -> None:
    """A schema written with sorted keys is the same content."""
    assert content_key(parse(json.dumps(schema.value, sort_keys=True))) == content_key(schema)
