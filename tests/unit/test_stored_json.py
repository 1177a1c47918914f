"""Stored JSON objects: what is none, or is in a later format, is refused."""

import pytest

from pipeline.errors import NewerFormatError, RefusedError
from pipeline.stored_json import fields_of


@pytest.mark.parametrize(
    "value",
    [None, b"", b"\xff", b"[]", b"7", b"{}", b'{"format": "1"}', b'{"format": true}', b"[" * 9_999],
)
def test_what_is_no_object_with_a_format_is_refused(value: bytes | None) -> None:
    """With the error of what was expected."""

    class NoThingError(RefusedError):
        """It is no thing."""

        code = "no-thing"

    with pytest.raises(NoThingError, match="here: a record is no thing"):
        fields_of(value, "thing", "here", NoThingError)
    with pytest.raises(NewerFormatError):
        fields_of(b'{"format": 99}', "thing", "here", NoThingError)
    assert fields_of(b'{"format": 1, "a": 2}', "thing", "", NoThingError) == {"format": 1, "a": 2}
