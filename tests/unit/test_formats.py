"""Stored data in formats of newer versions is refused."""

import pytest

from pipeline.errors import NewerFormatError, RefusedError
from pipeline.formats import NEWEST, WRITTEN, check


def test_every_format_up_to_the_newest_is_accepted() -> None:
    """Older ones too; the next one is refused with both numbers and the remedy."""
    for version in range(1, 4):
        check(version, "record", "here", newest=3)
    with pytest.raises(NewerFormatError, match="format 4, this one reads up to 3") as e:
        check(4, "record", "here", newest=3)
    assert isinstance(e.value, RefusedError)
    assert e.value.place == "here"
    assert "Nothing was changed" in e.value.hint


def test_every_written_format_can_be_read() -> None:
    """Encoders write a supported format."""
    assert 1 <= WRITTEN <= NEWEST
