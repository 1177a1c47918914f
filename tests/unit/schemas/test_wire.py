import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import SchemaGuid, SchemaId
from schemas.wire import Framed, Part, WireFault, identified, join, split


@given(st.integers(0, 2**32 - 1), st.binary())
def test_a_framed_body_splits_into_its_parts(schema_id: int, body: bytes) -> None:
    """Id and body are preserved, an empty body too."""
    assert split(join(SchemaId(schema_id), body)) == Framed(SchemaId(schema_id), body)


def test_layout_is_zero_byte_and_big_endian_id() -> None:
    """The bytes are those that Confluent's clients write."""
    assert join(SchemaId(258), b"x") == b"\x00\x00\x00\x01\x02x"


def test_faults_are_distinct() -> None:
    """No value, another format, and a truncated frame are three results."""
    assert split(None) is WireFault.EMPTY
    assert split(b"") is WireFault.EMPTY
    assert split(b'{"a":1}') is WireFault.NOT_MAGIC
    assert split(b"\x01\x00\x00\x00\x01") is WireFault.NOT_MAGIC
    assert split(b"\x00\x00\x00\x01") is WireFault.TOO_SHORT


@given(st.binary())
def test_any_bytes_have_a_result(value: bytes) -> None:
    """Splitting never raises."""
    found = split(value)
    assert isinstance(found, WireFault) or join(found.schema, found.body) == value


GUID = SchemaGuid("095d71cf-1255-6b9d-5e33-0ad575b3df5d")
BY_GUID = b"\x01" + bytes.fromhex(GUID.replace("-", ""))
NAME = Part.VALUE.value


@pytest.mark.parametrize(
    ("content", "headers", "found"),
    [
        (join(SchemaId(7), b"x"), (), Framed(SchemaId(7), b"x")),
        (b"x", ((NAME, BY_GUID),), Framed(GUID, b"x")),
        (b"x", ((NAME, join(SchemaId(7), b"")),), Framed(SchemaId(7), b"x")),
        (b"", ((NAME, BY_GUID),), Framed(GUID, b"")),
        (BY_GUID + b"x", (), Framed(GUID, b"x")),
        (join(SchemaId(7), b"x"), ((NAME, b"?"),), Framed(SchemaId(7), b"x")),
        (join(SchemaId(7), b"x"), ((NAME, None),), Framed(SchemaId(7), b"x")),
        (join(SchemaId(7), b"x"), ((Part.KEY.value, BY_GUID),), Framed(SchemaId(7), b"x")),
        (BY_GUID[:-1], (), WireFault.NOT_MAGIC),
        (None, (), WireFault.EMPTY),
        (None, ((NAME, BY_GUID),), WireFault.EMPTY),
        (join(SchemaId(7), b"x"), ((NAME, b"?"), (NAME, BY_GUID)), Framed(SchemaId(7), b"x")),
    ],
)
def test_a_header_takes_precedence_over_a_prefix(
    content: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...],
    found: Framed | WireFault,
) -> None:
    """For its own part of the record, if it is well-formed."""
    assert identified(content, headers, Part.VALUE) == found
