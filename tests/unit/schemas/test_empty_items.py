import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import SchemaError
from schemas.avro import AvroSchema, parse
from schemas.codec import decode, encode
from schemas.empty_items import ITEMS_MAX, check_empty_items
from tests.unit.schemas.strategies import schemas, values

NULLS = parse('{"type":"array","items":"null"}')
NOTHING = '{"type":"record","name":"Nothing","fields":[{"name":"none","type":"null"}]}'
RECORDS = parse(f'{{"type":"array","items":{NOTHING}}}')
FIXED = parse('{"type":"array","items":{"type":"fixed","name":"F","size":0}}')
INNER = parse(
    '{"type":"record","name":"R","fields":['
    '{"name":"id","type":["null","long"]},{"name":"at","type":"double"},'
    '{"name":"byKey","type":{"type":"map","values":{"type":"array","items":"null"}}}]}'
)
NESTED = parse('{"type":"array","items":{"type":"array","items":"null"}}')


def number(value: int) -> bytes:
    """A long in Avro's encoding."""
    zigzag, out = value << 1 if value >= 0 else (-value << 1) - 1, b""
    while zigzag >= 0x80:
        out += bytes([zigzag & 0x7F | 0x80])
        zigzag >>= 7
    return out + bytes([zigzag])


@pytest.mark.parametrize("schema", [NULLS, RECORDS, FIXED], ids=["null", "record", "fixed"])
@pytest.mark.parametrize(
    "body",
    [
        number(ITEMS_MAX + 1) + b"\x00",
        number(2**62) + b"\x00",
        number(-(2**40)) + b"\x00\x00",
        number(ITEMS_MAX) + number(1) + b"\x00",
        number(2**62),
    ],
    ids=["one too many", "very many", "with a size", "in two blocks", "cut off"],
)
def test_items_without_bytes_are_limited(schema: AvroSchema, body: bytes) -> None:
    """Nine bytes would otherwise fill the memory of the process."""
    with pytest.raises(SchemaError, match="more than 4194304 items without bytes"):
        decode(schema, schema, body)


def test_they_are_counted_over_all_arrays_of_a_body() -> None:
    """Many arrays below the limit are as large as one above it."""
    inner = number(ITEMS_MAX // 2) + b"\x00"
    check_empty_items(NESTED, number(2) + inner * 2 + b"\x00")
    with pytest.raises(SchemaError, match="items without bytes"):
        check_empty_items(NESTED, number(3) + inner * 3 + b"\x00")


def test_values_before_an_array_are_skipped() -> None:
    """Its position depends on unions, numbers and keys before it."""
    begin = b"\x02" + number(-70_000) + bytes(8) + number(1) + number(3) + b"key"
    check_empty_items(INNER, begin + number(5) + b"\x00\x00")
    with pytest.raises(SchemaError, match="the bytes are no R: an array declares"):
        check_empty_items(INNER, begin + number(2**50))


@pytest.mark.parametrize("body", [b"", b"\x02", b"\x80" * 40, b"\x04", number(1) + number(99)])
def test_a_broken_body_is_rejected(body: bytes) -> None:
    """Wherever it is broken."""
    with pytest.raises(SchemaError, match="the bytes are no R: "):
        decode(INNER, INNER, body)


@pytest.mark.parametrize(
    "length", [b"\x82" + b"\x80" * 8 + b"\x02", b"\x82" + b"\x80" * 9 + b"\x02"]
)
def test_a_number_of_more_than_64_bits_hides_no_array(length: bytes) -> None:
    """A decoder that keeps the lowest 64 bits reads a length of 1, and then the array."""
    schema = parse(
        '{"type":"record","name":"R","fields":[{"name":"s","type":"string"},'
        '{"name":"n","type":{"type":"array","items":"null"}}]}'
    )
    with pytest.raises(SchemaError, match="the bytes are no R: "):
        decode(schema, schema, length + b"x" + number(2**40) + b"\x00")


def test_a_negative_branch_hides_no_array() -> None:
    """A list has a last element by a negative index."""
    schema = parse(
        '{"type":"record","name":"R","fields":[{"name":"u","type":["null","long"]},'
        '{"name":"n","type":{"type":"array","items":"null"}}]}'
    )
    with pytest.raises(SchemaError, match="the bytes are no R: "):
        decode(schema, schema, number(-1) + number(7) + number(2**40) + b"\x00")


def test_a_schema_that_contains_itself_is_checked() -> None:
    """Each named type is visited once."""
    tree = parse(
        '{"type":"record","name":"Tree","fields":['
        '{"name":"marks","type":{"type":"array","items":"null"}},'
        '{"name":"left","type":["null","Tree"]}]}'
    )
    body = encode(tree, {"marks": [None], "left": {"marks": [], "left": None}})
    check_empty_items(tree, body)
    with pytest.raises(SchemaError, match="items without bytes"):
        check_empty_items(tree, number(1) + b"\x00" + b"\x02" + number(2**33))


@given(st.data(), schemas())
def test_every_encoded_value_is_accepted(data: st.DataObject, schema: AvroSchema) -> None:
    """Also with arrays of every type of items."""
    listed = parse(f'{{"type":"array","items":{schema.text}}}')
    check_empty_items(listed, encode(listed, data.draw(st.lists(values(schema), max_size=3))))
