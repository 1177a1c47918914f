import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import Epoch
from pipeline.tentative.generation import Generation, following, read

NUMBERS = st.integers(1, 10**18)


@given(NUMBERS, NUMBERS)
def test_a_generation_is_read_as_it_was_written(epoch: int, number: int) -> None:
    """A generation is read as it was written."""
    made = Generation(Epoch(epoch), number)
    assert read(made.encode()) == made


@pytest.mark.parametrize(
    "text", [None, b"", b"1", b"1.", b".1", b"0.1", b"1.0", b"01.1", b"1.1\n", b"-1.1", b"1.1.1"]
)
def test_a_damaged_generation_is_none(text: bytes | None) -> None:
    """A damaged generation is none."""
    assert read(text) is None


def test_generations_are_ordered_by_epoch_then_by_number() -> None:
    """Generations are ordered by epoch then by number."""
    assert Generation(Epoch(2), 1) > Generation(Epoch(1), 12) > Generation(Epoch(1), 2)


def test_the_numbers_begin_again_with_each_epoch() -> None:
    """The numbers begin again with each epoch."""
    assert following(None, Epoch(4)) == Generation(Epoch(4), 1)
    assert following(Generation(Epoch(3), 7), Epoch(4)) == Generation(Epoch(4), 1)
    assert following(Generation(Epoch(4), 7), Epoch(4)) == Generation(Epoch(4), 8)
    # Of a fragment that has written the output before.
    assert following(Generation(Epoch(4), 7), Epoch(1)) == Generation(Epoch(4), 8)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_the_following_generation_is_newer(epoch: int, number: int, later: int) -> None:
    """The following generation is newer."""
    newest = Generation(Epoch(epoch), number)
    assert following(newest, Epoch(max(epoch, later))) > newest
