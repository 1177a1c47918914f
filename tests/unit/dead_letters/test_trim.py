from hypothesis import given
from hypothesis import strategies as st

from pipeline.dead_letters.trim import trim
from pipeline.ids import Offset

OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 9).map(Offset))


def test_old_dead_letters_are_removed_that_no_rebuild_needs() -> None:
    """The lower of the two offsets decides; partitions without removals are missing."""
    starts = {0: Offset(2), 1: Offset(2), 2: Offset(2)}
    needed = {0: Offset(5), 1: Offset(9), 2: Offset(2)}
    young = {0: Offset(9), 1: Offset(6), 2: Offset(9)}
    assert trim(starts, needed, young) == {0: 5, 1: 6}


@given(starts=OFFSETS, needed=OFFSETS, young=OFFSETS)
def test_partitions_without_both_offsets_are_kept(
    starts: dict[int, Offset], needed: dict[int, Offset], young: dict[int, Offset]
) -> None:
    """Need and age must both be known."""
    for partition, until in trim(starts, needed, young).items():
        assert starts[partition] < until <= min(needed[partition], young[partition])
