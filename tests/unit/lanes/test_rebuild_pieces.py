"""Pieces of a rebuild."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import BatchId, Millis, Offset, StreamName, TopicName
from pipeline.lanes.rebuild_pieces import (
    Piece,
    Pieces,
    RebuildPlan,
    divided,
    drops_meanwhile,
    watermarks,
)
from pipeline.markers.positions import InputPartition
from pipeline.network.boxes.sessions import SessionWindow
from pipeline.network.boxes.shape import Joined, Sessions, Shape, Windowed
from pipeline.network.boxes.windows import TumblingWindow

A, B, C = (InputPartition(StreamName("cars"), TopicName("sightings"), n) for n in range(3))
PAIRS = Joined(span_ms=10)
TEN = Windowed(TumblingWindow(size_ms=10, offset_ms=0))
RANGES = st.dictionaries(
    st.sampled_from([A, B, C]),
    st.tuples(st.integers(0, 50), st.integers(-3, 400)),
    min_size=1,
)


def positions(**of: int) -> dict[InputPartition, Offset]:
    """Positions in partitions `a`, `b` and `c`."""
    return {{"a": A, "b": B, "c": C}[name]: Offset(offset) for name, offset in of.items()}


def test_each_partition_is_divided_evenly() -> None:
    """So all of them go on together."""
    pieces = divided(positions(a=0, b=10), positions(a=10, b=13), 5)
    assert pieces.number == 3
    ends = [pieces.end_of(piece) for piece in range(-1, 3)]
    assert ends == [
        positions(a=0, b=10),
        positions(a=3, b=11),
        positions(a=6, b=12),
        positions(a=10, b=13),
    ]
    assert [pieces.offsets(done) for done in range(4)] == [0, 4, 8, 13]


def test_nothing_to_read_is_one_piece() -> None:
    """It brings the watermark into force, and ends at the marker's positions in any case."""
    for end in (positions(a=4), positions(a=2)):
        pieces = divided(positions(a=4), end, 5)
        assert (pieces.number, pieces.end_of(0), pieces.offsets(1)) == (1, end, 0)


@given(RANGES, st.integers(1, 100))
def test_pieces_are_bounded_and_contain_every_offset_once(
    ranges: Mapping[InputPartition, tuple[int, int]], most: int
) -> None:
    """No piece is empty, unless there is nothing to read: Spark would not execute it."""
    begin = {at: Offset(start) for at, (start, _) in ranges.items()}
    end = {at: Offset(start + length) for at, (start, length) in ranges.items()}
    pieces = divided(begin, end, most)
    assert pieces.end_of(-1) == begin
    for piece in range(pieces.number):
        before, after = pieces.end_of(piece - 1), pieces.end_of(piece)
        sizes = [max(0, after[at] - before[at]) for at in ranges]
        assert sum(sizes) <= most + len(ranges)
        assert sum(sizes) > 0 or pieces.number == 1
        assert all(before[at] <= after[at] for at in ranges if begin[at] <= end[at])
    assert pieces.end_of(pieces.number - 1) == end


def test_a_watermark_is_below_everything_that_is_still_to_be_read() -> None:
    """Records of one piece may be older than those of a piece before it."""
    oldest = [Millis(5), Millis(70), Millis(20), None, Millis(90)]
    found = watermarks(PAIRS, oldest, None, Millis(60))
    assert found == (19, 19, 60, 60, 60)
    # A window is dropped when all of its records are there: the watermark is 1 ms above.
    assert watermarks(TEN, oldest, None, Millis(60)) == (20, 20, 60, 60, 60)


def test_a_watermark_is_never_below_that_of_the_checkpoint() -> None:
    """A record that is partly late may be below it."""
    assert watermarks(TEN, [Millis(5), Millis(7), Millis(90)], Millis(8), Millis(60)) == (8, 60, 60)


def test_an_event_time_that_is_not_known_holds_everything() -> None:
    """So do the first milliseconds, which are no watermark of Spark's."""
    for first in (0, 1):
        found = watermarks(PAIRS, [Millis(70), Millis(first), Millis(90)], None, Millis(60))
        assert found == (None, 60, 60)


def test_a_state_without_a_watermark_is_rebuilt_without_one() -> None:
    """The lane had closed nothing."""
    assert watermarks(PAIRS, [Millis(70), Millis(80)], None, None) == (None, None)


TIMES = st.one_of(st.none(), st.integers(0, 50).map(Millis))


@given(
    st.sampled_from([PAIRS, TEN]),
    st.lists(TIMES, min_size=1, max_size=9),
    st.one_of(st.none(), st.integers(2, 30).map(Millis)),
)
def test_no_record_is_late_and_the_last_watermark_is_the_markers(
    shape: Shape, oldest: list[Millis | None], last_ms: Millis | None
) -> None:
    """In force in a piece: what is late in the next ones; never more than the marker's."""
    found = watermarks(shape, oldest, None, last_ms)
    assert found[-1] == last_ms
    for before, after in pairwise(found):
        assert (before or 0) <= (after or 0)
    for piece, watermark_ms in enumerate(found):
        assert (watermark_ms or 0) <= (last_ms or 0)
        for later in oldest[piece + 1 :]:
            # A record at t is in a window that ends at t + 1 at the earliest.
            ends_ms = None if later is None else later + shape.watermark_lead_ms
            assert ends_ms is None or watermark_ms is None or watermark_ms < max(ends_ms, 1)


def test_event_times_are_read_first_where_much_is_dropped() -> None:
    """Else reading twice would save nothing."""
    sessions = Sessions(SessionWindow(gap_ms=10, longest_ms=100))
    as_of = Joined(span_ms=10, waits=True, passing=frozenset({StreamName("cars")}))
    assert [drops_meanwhile(one, chosen=False) for one in (TEN, PAIRS, sessions, as_of)] == [
        False,
        False,
        True,
        True,
    ]
    assert drops_meanwhile(TEN, chosen=True)


@pytest.mark.parametrize("first", [0, 8])
def test_batches_are_numbered_after_those_of_the_checkpoint(first: int) -> None:
    """The first one of an empty folder is 0."""
    pieces = Pieces(positions(a=0), positions(a=4), 2)
    plan = RebuildPlan(pieces, (None, Millis(9)), BatchId(first))
    assert plan.last == first + 1
    assert plan.piece(0) == Piece(BatchId(first), positions(a=2), None)
    assert plan.piece(1) == Piece(plan.last, positions(a=4), Millis(9))
