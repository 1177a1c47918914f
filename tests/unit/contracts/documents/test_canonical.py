"""Canonical JSON: examples of RFC 8785, and what is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.contracts.documents.canonical import canonical, digest, read_object
from pipeline.errors import RefusedError
from schemas.json_value import Json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


def test_keys_are_sorted_by_utf_16_and_texts_escaped_as_the_standard_says() -> None:
    """The example of section 3.2.3, whose order differs from that of code points."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = list(json.loads(canonical(dict.fromkeys(names, 0))))
    assert found == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    text = '\u20ac$\u000f\nA\'B"\\\\"/'
    assert canonical(text) == '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'.encode()


def test_the_digest_is_that_of_the_bytes() -> None:
    """SHA-256 of `{}`."""
    assert digest({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


@given(st.dictionaries(st.text(max_size=5), JSON))
def test_the_canonical_form_is_read_as_the_same_value(value: dict[str, Json]) -> None:
    """And a value has one form, whatever the order of its keys."""
    data = canonical(value)
    assert read_object(data, "document", "") == value
    assert canonical(dict(reversed(value.items()))) == data


@pytest.mark.parametrize(
    "data",
    [b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":1.5}', b'{"a":1.0}', b'{"a":NaN}',
     b'{"a":1e3}', b'{"a":"\\u0041"}', b"[]", b"x", b"\xff", b"", b'{"a":1}\n'],
)  # fmt: skip
def test_any_other_form_is_refused(data: bytes) -> None:
    """Spaces, order, repeated keys, numbers that are not whole, escapes that are not needed."""
    with pytest.raises(RefusedError, match="this is no document"):
        read_object(data, "document", "here")


def test_numbers_beyond_those_of_json_are_refused() -> None:
    """Other programs would read another number."""
    with pytest.raises(RefusedError, match="no canonical JSON form"):
        canonical({"a": 2**53})
