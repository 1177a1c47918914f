"""Boundary of a derived stream in a lane that reads it."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.boundaries.derived import (
    IDLE_FRESH_MS,
    IDLE_OBSERVED_MS,
    PENDING_MAX,
    PendingBoundary,
    WriterSeen,
    settled,
    with_activity,
    with_boundary,
)
from pipeline.ids import Epoch, Millis, Offset, SteadyMillis


def promise(at_ms: int, *offsets: int) -> PendingBoundary:
    """A boundary that covers partitions 0, 1, … up to the offsets."""
    return PendingBoundary(Millis(at_ms), {p: Offset(o) for p, o in enumerate(offsets)})


def finished(*offsets: int) -> dict[int, Offset]:
    """Positions in partitions 0, 1 and so on."""
    return {p: Offset(o) for p, o in enumerate(offsets)}


def test_a_boundary_counts_only_when_every_partition_is_covered() -> None:
    """One partition that lags delays the boundary."""
    seen = with_boundary(WriterSeen(), Epoch(1), promise(100, 5, 7))
    assert settled(seen, finished(9, 6)).covered_ms is None
    assert settled(seen, finished(5, 7)).covered_ms == 100


def test_a_partition_without_a_position_counts_as_unread() -> None:
    """A new partition with records has to be read first; an empty one need not."""
    seen = with_boundary(WriterSeen(), Epoch(1), promise(100, 5, 1))
    assert settled(seen, finished(5)).covered_ms is None
    seen = with_boundary(WriterSeen(), Epoch(1), promise(100, 5, 0))
    assert settled(seen, finished(5)).covered_ms == 100


def test_boundaries_of_an_older_epoch_are_ignored() -> None:
    """After a boundary of a newer owner, those of an older one are invalid."""
    seen = with_boundary(WriterSeen(), Epoch(2), promise(100, 0))
    assert settled(with_boundary(seen, Epoch(1), promise(900, 0)), finished(0)).covered_ms == 100


def test_a_boundary_never_falls() -> None:
    """A new owner may repeat an old promise; the newest one counts."""
    seen = settled(with_boundary(WriterSeen(), Epoch(1), promise(100, 0)), finished(0))
    seen = settled(with_boundary(seen, Epoch(2), promise(40, 0)), finished(0))
    assert seen.covered_ms == 100
    assert seen.epoch == 2


def test_an_equal_boundary_at_larger_offsets_is_not_kept() -> None:
    """The earlier one is equal and covered sooner."""
    seen = with_boundary(WriterSeen(), Epoch(1), promise(100, 5))
    seen = with_boundary(seen, Epoch(1), promise(100, 9))
    assert settled(seen, finished(5)).covered_ms == 100


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=300))
def test_pending_boundaries_are_bounded_and_include_the_oldest_and_the_newest(
    steps: list[tuple[int, int]],
) -> None:
    """However many are pending, few are kept, with the first and the last."""
    seen, at_ms, offset = WriterSeen(), 0, 1
    sent: list[PendingBoundary] = []
    for rise, records in steps:
        at_ms, offset = at_ms + rise, offset + records
        sent.append(promise(at_ms, offset))
        seen = with_boundary(seen, Epoch(1), sent[-1])
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
def test_the_largest_covered_boundary_counts_while_all_are_kept(
    steps: list[tuple[int, int, int]], first: int, second: int
) -> None:
    """Compared with a linear scan of all promises."""
    seen, at_ms, ends = WriterSeen(), 0, [0, 0]
    sent: list[PendingBoundary] = []
    for rise, left, right in steps[:PENDING_MAX]:
        at_ms, ends = at_ms + rise, [ends[0] + left, ends[1] + right]
        sent.append(promise(at_ms, *ends))
        seen = with_boundary(seen, Epoch(1), sent[-1])
    covered = [p.boundary_ms for p in sent if p.positions[0] <= first and p.positions[1] <= second]
    assert settled(seen, finished(first, second)).covered_ms == max(covered, default=None)


def test_an_equal_boundary_for_more_partitions_is_kept() -> None:
    """The topic has grown: the earlier one does not cover the new partition."""
    seen = with_boundary(WriterSeen(), Epoch(1), promise(100, 5))
    seen = with_boundary(seen, Epoch(1), promise(100, 5, 3))
    assert settled(seen, finished(5)).covered_ms == 100
    assert settled(seen, finished(5, 0)).covered_ms is None
    assert settled(seen, finished(5, 3)).covered_ms == 100


def test_a_boundary_without_a_partition_of_the_lane_is_dropped() -> None:
    """It can never count for this lane, whatever it reads."""
    seen = settled(with_boundary(WriterSeen(), Epoch(1), promise(100, 5)), finished(9, 9))
    assert (seen.covered_ms, seen.pending) == (None, ())


def report_idle(seen: WriterSeen, *at_ms: int, epoch: int = 1) -> WriterSeen:
    """The writer publishes at these times that it is idle."""
    for one in at_ms:
        seen = with_activity(seen, Epoch(epoch), idle=True, at_ms=SteadyMillis(one))
    return seen


def test_a_writer_is_idle_after_repeated_reports_of_idleness() -> None:
    """One old report, read at the start of a node, is not enough."""
    once = report_idle(WriterSeen(), 0)
    assert not once.is_idle(SteadyMillis(IDLE_OBSERVED_MS))
    often = report_idle(once, *range(1_000, IDLE_OBSERVED_MS + 1, 1_000))
    assert often.is_idle(SteadyMillis(IDLE_OBSERVED_MS))


def test_a_writer_without_recent_reports_is_not_idle() -> None:
    """It may have failed with unread inputs; then the reports have to start again."""
    seen = report_idle(WriterSeen(), *range(0, 4_000, 1_000))
    last = 3_000 + IDLE_FRESH_MS
    assert seen.is_idle(SteadyMillis(last))
    assert not seen.is_idle(SteadyMillis(last + 1))
    assert not report_idle(seen, last + 1).is_idle(SteadyMillis(last + 1))


def test_a_writer_that_is_active_again_is_not_idle() -> None:
    """Immediately."""
    seen = report_idle(WriterSeen(), *range(0, 4_000, 1_000))
    active = with_activity(seen, Epoch(1), idle=False, at_ms=SteadyMillis(3_001))
    assert not active.is_idle(SteadyMillis(3_001))


def test_activity_of_another_owner_does_not_apply_to_a_new_one() -> None:
    """And that of an older owner is ignored; boundaries are unchanged."""
    seen = settled(with_boundary(WriterSeen(), Epoch(1), promise(100, 0)), finished(0))
    seen = report_idle(seen, *range(0, 4_000, 1_000))
    assert seen.covered_ms == 100
    taken_over = with_boundary(seen, Epoch(2), promise(200, 7))
    assert not taken_over.is_idle(SteadyMillis(3_000))
    assert report_idle(taken_over, 3_000, epoch=1) == taken_over
    assert not report_idle(seen, 3_000, epoch=2).is_idle(SteadyMillis(3_000))
    still = settled(with_boundary(seen, Epoch(1), promise(200, 7)), finished(7))
    assert still.is_idle(SteadyMillis(3_000))
