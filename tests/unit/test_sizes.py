"""Sizes in the notation of users."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import sizes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("512B", 512),
        ("3KiB", 3_072),
        ("16MiB", 16_777_216),
        ("4GiB", 4_294_967_296),
        (" 64 TiB ", 70_368_744_177_664),
    ],
)
def test_parse_reads_a_number_and_a_unit(text: str, size: int) -> None:
    """Each unit has its bytes; spaces are ignored."""
    assert sizes.parse(text) == size


@pytest.mark.parametrize(
    "text", ["", "5", "GiB", "1.5GiB", "-1B", "4GB", "4G", "4gib", "1GiB512MiB", "\u0665B"]
)
def test_parse_refuses_everything_else(text: str) -> None:
    """An invalid size is refused with a message, not guessed."""
    with pytest.raises(ValueError, match="is not a size"):
        sizes.parse(text)


@given(st.integers(min_value=0, max_value=sizes.parse("64TiB")))
def test_format_is_read_back(size: int) -> None:
    """Parsing a formatted size returns the same number."""
    assert sizes.parse(sizes.format(size)) == size


def test_the_examples_of_sizes() -> None:
    """Those in the docstrings are correct."""
    assert doctest.testmod(sizes).failed == 0
