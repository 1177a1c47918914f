from hypothesis import given
from hypothesis import strategies as st

from pipeline.dead_letters.trim import trim
from pipeline.ids import Offset

OFFSETS = st.dictionaries(st.integers(0, 3), st.integers(0, 9).map(Offset))


def test_old_dead_letters_go_that_no_rebuild_needs() -> None:
    """Whichever comes first keeps all that follow; where nothing goes, nothing is said."""
    starts = {0: Offset(2), 1: Offset(2), 2: Offset(2)}
    needed = {0: Offset(5), 1: Offset(9), 2: Offset(2)}
    young = {0: Offset(9), 1: Offset(6), 2: Offset(9)}
    assert trim(starts, needed, young) == {0: 5, 1: 6}


@given(starts=OFFSETS, needed=OFFSETS, young=OFFSETS)
def test_what_is_not_known_stays(
    starts: dict[int, Offset], needed: dict[int, Offset], young: dict[int, Offset]
) -> None:
    """A partition of which need or age is not known is left alone."""
    for partition, until in trim(starts, needed, young).items():
        assert starts[partition] < until <= min(needed[partition], young[partition])
