"""The boundary of a derived stream for a lane that reads it."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.derived import PENDING_MAX, PendingBoundary, WriterSeen, heard, settled
from pipeline.ids import Epoch, Millis, Offset


def promise(at_ms: int, *offsets: int) -> PendingBoundary:
    """A boundary that covers partitions 0, 1, … up to the offsets."""
    return PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})


def finished(*offsets: int) -> dict[int, Offset]:
    """Positions in partitions 0, 1 and so on."""
    return {p: Offset(o) for p, o in enumerate(offsets)}


def test_a_boundary_counts_only_when_every_partition_is_covered() -> None:
    """One partition that lags keeps the boundary waiting."""
    seen = heard(WriterSeen(), Epoch(1), promise(100, 5, 7))
    assert settled(seen, finished(9, 6)).covered_ms is None
    assert settled(seen, finished(5, 7)).covered_ms == 100


def test_a_partition_that_the_lane_does_not_know_counts_as_unread() -> None:
    """A new partition with records has to be read first; an empty one need not."""
    seen = heard(WriterSeen(), Epoch(1), promise(100, 5, 1))
    assert settled(seen, finished(5)).covered_ms is None
    seen = heard(WriterSeen(), Epoch(1), promise(100, 5, 0))
    assert settled(seen, finished(5)).covered_ms == 100


def test_boundaries_of_an_older_epoch_are_ignored() -> None:
    """Once a newer owner has spoken, an older one has nothing to promise."""
    seen = heard(WriterSeen(), Epoch(2), promise(100, 0))
    assert settled(heard(seen, Epoch(1), promise(900, 0)), finished(0)).covered_ms == 100


def test_a_boundary_never_goes_back() -> None:
    """A new owner may repeat an old promise; the newest one counts."""
    seen = settled(heard(WriterSeen(), Epoch(1), promise(100, 0)), finished(0))
    seen = settled(heard(seen, Epoch(2), promise(40, 0)), finished(0))
    assert seen.covered_ms == 100
    assert seen.epoch == 2


def test_the_same_boundary_with_more_records_is_not_kept() -> None:
    """The earlier one says the same and is covered sooner."""
    seen = heard(WriterSeen(), Epoch(1), promise(100, 5))
    seen = heard(seen, Epoch(1), promise(100, 9))
    assert settled(seen, finished(5)).covered_ms == 100


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=300))
def test_many_pending_boundaries_stay_bounded_with_the_oldest_and_the_newest(
    steps: list[tuple[int, int]],
) -> None:
    """However many wait, few are kept; a lane that reads on finds the first and the last."""
    seen, at_ms, offset = WriterSeen(), 0, 1
    sent: list[PendingBoundary] = []
    for rise, records in steps:
        at_ms, offset = at_ms + rise, offset + records
        sent.append(promise(at_ms, offset))
        seen = heard(seen, Epoch(1), sent[-1])
        assert len(seen.pending) <= PENDING_MAX
    if sent:
        assert seen.pending[0] == sent[0]
        assert seen.pending[-1].boundary_ms == sent[-1].boundary_ms
        assert settled(seen, finished(offset)).covered_ms == sent[-1].boundary_ms


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 3), st.integers(0, 3)), max_size=100),
    st.integers(0, 100),
    st.integers(0, 100),
)
def test_what_counts_is_the_largest_covered_boundary_while_all_are_kept(
    steps: list[tuple[int, int, int]], first: int, second: int
) -> None:
    """Against a plain scan of everything that was promised."""
    seen, at_ms, ends = WriterSeen(), 0, [0, 0]
    sent: list[PendingBoundary] = []
    for rise, left, right in steps[:PENDING_MAX]:
        at_ms, ends = at_ms + rise, [ends[0] + left, ends[1] + right]
        sent.append(promise(at_ms, *ends))
        seen = heard(seen, Epoch(1), sent[-1])
    covered = [p.boundary_ms for p in sent if p.positions[0] <= first and p.positions[1] <= second]
    assert settled(seen, finished(first, second)).covered_ms == max(covered, default=None)


def test_the_same_boundary_for_more_partitions_is_kept() -> None:
    """The topic has grown: the earlier one says nothing about the new partition."""
    seen = heard(WriterSeen(), Epoch(1), promise(100, 5))
    seen = heard(seen, Epoch(1), promise(100, 5, 3))
    assert settled(seen, finished(5)).covered_ms == 100
    assert settled(seen, finished(5, 0)).covered_ms is None
    assert settled(seen, finished(5, 3)).covered_ms == 100


def test_a_boundary_that_does_not_name_what_the_lane_reads_is_dropped() -> None:
    """It can never count for this lane, whatever it reads."""
    seen = settled(heard(WriterSeen(), Epoch(1), promise(100, 5)), finished(9, 9))
    assert (seen.covered_ms, seen.pending) == (None, ())
