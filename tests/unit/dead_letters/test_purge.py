from hypothesis import given
from hypothesis import strategies as st

from pipeline.dead_letters.purge import purge
from pipeline.ids import Millis, Offset
from tests.unit.dead_letters.support import NOW, letter


def test_everything_is_removed_that_no_rebuild_needs() -> None:
    """Up to the end of the partition, also after the last dead letter."""
    found = purge([letter(0), letter(1)], {0: Offset(9), 1: Offset(4)}, None, {0: Offset(9)})
    assert (found.removed, found.needed, found.younger) == (2, 0, 0)
    assert found.until == {0: 9, 1: 4}


def test_a_needed_letter_is_kept_with_all_after_it() -> None:
    """A rebuild leaves out the same records, and checks that their dead letters exist."""
    letters = [letter(0), letter(5), letter(6)]
    found = purge(letters, {0: Offset(9)}, None, {0: Offset(5)})
    assert (found.until, found.removed, found.needed) == ({0: 5}, 1, 2)


def test_the_offsets_that_a_rebuild_needs_are_kept_in_front_of_a_gap() -> None:
    """It checks the offset from which it needs them, not that of its first letter."""
    found = purge([letter(8), letter(13)], {0: Offset(15)}, None, {0: Offset(10)})
    assert (found.until, found.removed, found.needed) == ({0: 10}, 1, 1)
    assert purge([letter(8)], {0: Offset(15)}, None, {0: Offset(10)}).until == {0: 10}


def test_removal_ends_before_the_first_young_letter() -> None:
    """In each partition separately."""
    letters = [
        letter(0, appended=Millis(NOW - 2)),
        letter(1, appended=NOW),
        letter(2, appended=Millis(NOW - 2)),
        letter(7, own_partition=1, appended=Millis(NOW - 2)),
    ]
    found = purge(letters, {0: Offset(3), 1: Offset(8)}, NOW, {})
    assert (found.until, found.removed, found.younger) == ({0: 1, 1: 8}, 2, 2)


@given(
    places=st.lists(st.integers(0, 1), max_size=20),
    needed=st.integers(0, 20),
)
def test_no_needed_letter_is_ever_removed(places: list[int], needed: int) -> None:
    """In any order, no dead letter below the cut is needed, and each is counted."""
    letters = [letter(number, own_partition=own) for number, own in enumerate(places)]
    found = purge(letters, {0: Offset(20), 1: Offset(20)}, None, {0: Offset(needed)})
    for one in letters:
        partition, offset = one.number
        kept = partition == 0 and offset >= needed
        assert (offset >= found.until[partition]) is kept
    assert found.removed + found.needed == len(letters)
