from hypothesis import given
from hypothesis import strategies as st

from pipeline.dead_letters.purge import purge
from pipeline.ids import Millis, Offset, StreamName, TopicName
from pipeline.lanes.positions import InputPartition
from tests.unit.dead_letters.support import NOW, letter

AT = InputPartition(StreamName("sightings"), TopicName("car-sightings"), 1)


def test_everything_goes_that_no_rebuild_needs() -> None:
    """Also what lies in holes behind the last letter."""
    found = purge([letter(0), letter(1)], {0: Offset(9), 1: Offset(4)}, None, {AT: Offset(102)})
    assert (found.removed, found.needed, found.younger) == (2, 0, 0)
    assert found.until == {0: 9, 1: 4}


def test_a_needed_letter_stays_with_all_behind_it() -> None:
    """A rebuild reads from the needed position on, and must leave out what was left out."""
    letters = [letter(0), letter(5, offset=Offset(200)), letter(6, offset=Offset(3))]
    found = purge(letters, {0: Offset(9)}, None, {AT: Offset(200)})
    assert (found.until, found.removed, found.needed) == ({0: 5}, 1, 2)


def test_the_first_young_letter_ends_what_goes() -> None:
    """Each partition by itself."""
    letters = [
        letter(0, came=Millis(NOW - 2)),
        letter(1, came=NOW),
        letter(2, came=Millis(NOW - 2)),
        letter(7, own_partition=1, came=Millis(NOW - 2)),
    ]
    found = purge(letters, {0: Offset(3), 1: Offset(8)}, NOW, None)
    assert (found.until, found.removed, found.younger) == ({0: 1, 1: 8}, 2, 2)


def test_results_and_inputs_that_are_not_read_any_more_are_not_needed() -> None:
    """No rebuild looks for them."""
    other = letter(0, input="other", offset=Offset(999))
    result = letter(1, topic=None, partition=None, offset=None)
    assert purge([other, result], {0: Offset(2)}, None, {AT: Offset(0)}).removed == 2


@given(
    places=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20)), max_size=20),
    needed=st.integers(0, 20),
)
def test_no_needed_letter_is_ever_removed(places: list[tuple[int, int]], needed: int) -> None:
    """Whatever the order, what is below the cut is not needed, and every letter is counted."""
    letters = [
        letter(number, own_partition=own, offset=Offset(at))
        for number, (own, at) in enumerate(places)
    ]
    found = purge(letters, {0: Offset(20), 1: Offset(20)}, None, {AT: Offset(needed)})
    for one in letters:
        if one.at is not None and one.at.offset >= needed:
            assert one.number[1] >= found.until[one.number[0]]
    assert found.removed + found.needed == len(letters)
