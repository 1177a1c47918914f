from hypothesis import given
from hypothesis import strategies as st

from pipeline.dead_letters.purge import purge
from pipeline.ids import Millis, Offset
from tests.unit.dead_letters.support import NOW, letter


def test_everything_goes_that_no_rebuild_needs() -> None:
    """Also what lies in holes behind the last letter; of partition 1 nothing is needed."""
    found = purge([letter(0), letter(1)], {0: Offset(9), 1: Offset(4)}, None, {0: Offset(9)})
    assert (found.removed, found.needed, found.younger) == (2, 0, 0)
    assert found.until == {0: 9, 1: 4}


def test_a_needed_letter_stays_with_all_behind_it() -> None:
    """A rebuild must leave out what was left out, and checks that the letters are there."""
    letters = [letter(0), letter(5), letter(6)]
    found = purge(letters, {0: Offset(9)}, None, {0: Offset(5)})
    assert (found.until, found.removed, found.needed) == ({0: 5}, 1, 2)


def test_the_first_young_letter_ends_what_goes() -> None:
    """Each partition by itself."""
    letters = [
        letter(0, came=Millis(NOW - 2)),
        letter(1, came=NOW),
        letter(2, came=Millis(NOW - 2)),
        letter(7, own_partition=1, came=Millis(NOW - 2)),
    ]
    found = purge(letters, {0: Offset(3), 1: Offset(8)}, NOW, {})
    assert (found.until, found.removed, found.younger) == ({0: 1, 1: 8}, 2, 2)


@given(
    places=st.lists(st.integers(0, 1), max_size=20),
    needed=st.integers(0, 20),
)
def test_no_needed_letter_is_ever_removed(places: list[int], needed: int) -> None:
    """Whatever the order, what is below the cut is not needed, and every letter is counted."""
    letters = [letter(number, own_partition=own) for number, own in enumerate(places)]
    found = purge(letters, {0: Offset(20), 1: Offset(20)}, None, {0: Offset(needed)})
    for one in letters:
        partition, offset = one.number
        kept = partition == 0 and offset >= needed
        assert (offset >= found.until[partition]) is kept
    assert found.removed + found.needed == len(letters)
