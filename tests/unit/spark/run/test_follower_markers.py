"""The markers that a follower has not repeated yet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pipeline.errors import BrokenInvariantError
from pipeline.ids import Millis, Offset
from pipeline.lanes.following import NotToFollowError
from pipeline.markers.commit_marker import CommitMarker
from pipeline.spark.run.follower_markers import FAR_BATCHES, FAR_MS, FollowerMarkers
from tests.unit.lanes.start.test_decision import CARS
from tests.unit.lanes.test_following import MOST, begun, with_new, written

PLACE = "fragment tolls.speed"


class Tail:
    """Has some markers at once."""

    def __init__(self, *markers: CommitMarker) -> None:
        self.markers = list(markers)
        self.is_at_end = True

    def next(self, _: float) -> Sequence[CommitMarker]:
        """All that were not read."""
        found, self.markers = self.markers, []
        return found


def following(at: CommitMarker) -> FollowerMarkers:
    """A follower with the state of a marker."""
    markers = FollowerMarkers(PLACE)
    markers.built(at)
    return markers


def tail(*markers: CommitMarker) -> Any:
    """A topic with these markers."""
    return Tail(*markers)


def test_what_is_not_followed_yet_is_said() -> None:
    """It fails, and tries again."""
    markers = FollowerMarkers(PLACE)
    with pytest.raises(NotToFollowError, match="nothing is followed") as caught:
        _ = markers.running
    assert caught.value.place == PLACE
    for use in (lambda: markers.planned, markers.repeated):
        with pytest.raises(BrokenInvariantError):
            use()


def test_a_batch_waits_until_it_was_executed() -> None:
    """Then its marker says which state there is."""
    markers = following(written(4))
    found = markers.next(tail(written(5)), MOST, runs=True)
    assert found == markers.planned == written(5)
    assert markers.running == written(4)
    assert not markers.is_empty
    markers.repeated()
    assert markers.running == written(5)
    assert markers.is_empty


@pytest.mark.parametrize("clock_ms", [0, 1_700_000_000_000, 4_000_000_000_000])
def test_how_near_it_is_says_the_clock_of_the_owner(clock_ms: int) -> None:
    """Whatever that of this machine shows: how long the owner took to write what waits."""
    for batches, last_ms, is_near in (
        (59, 59_000, False),
        (59, FAR_MS, True),
        (2, FAR_MS + 1, False),
        (1, 59_000, True),
        (59, -59_000, False),
    ):
        markers = following(at(4, clock_ms))
        times = [clock_ms + last_ms * number // batches for number in range(1, batches + 1)]
        waiting = tail(*(at(5 + place, time) for place, time in enumerate(times)))
        markers.poll(waiting)
        assert markers.is_near(waiting) is is_near
        waiting.is_at_end = False
        assert not markers.is_near(waiting)
    markers = following(at(4, clock_ms))
    assert markers.is_near(tail())


def at(batch: int, at_ms: int) -> CommitMarker:
    """The marker of a batch, written at a time."""
    return replace(written(batch), written_at_ms=Millis(at_ms))


def test_a_query_ends_before_it_reads_more_partitions() -> None:
    """The next one begins with them; without a query it is as if there had been one."""
    copy, after = with_new(written(4), 0), with_new(written(5), 0, 3)
    markers = following(written(4))
    assert markers.next(tail(copy, after), MOST, runs=True) is None
    assert markers.has_grown
    assert markers.next(tail(), MOST, runs=False) == after
    alone = following(written(4))
    assert alone.next(tail(copy, after), MOST, runs=False) == after
    assert alone.has_grown
    alone.built(after)
    assert not alone.has_grown


def test_a_marker_that_does_not_follow_ends_it() -> None:
    """Whether the state is of use says the reason."""
    elsewhere = replace(written(5), start={CARS: Offset(1)})
    for marker, is_whole in ((replace(written(5), plan="another"), True), (elsewhere, False)):
        markers = following(written(4))
        with pytest.raises(NotToFollowError):
            markers.next(tail(marker), MOST, runs=True)
        assert markers.is_whole is is_whole


@pytest.mark.parametrize("runs", [True, False])
def test_a_state_is_brought_on_over_markers_that_are_missing(runs: bool) -> None:  # noqa: FBT001
    """They were removed while it was built: the query ends, and what is missing is read at once."""
    markers, waiting = following(at(4, 0)), tail(at(400, 400_000))
    assert markers.next(waiting, MOST, runs=runs) is None
    assert markers.has_hole
    assert markers.is_whole
    assert not markers.is_near(waiting)
    markers.poll(tail(at(401, 401_000), at(459, 459_000)))
    last = markers.newest()
    assert last.batch == 459
    markers.built(last)
    assert not markers.has_hole
    assert markers.next(tail(at(460, 460_000)), MOST, runs=runs) is not None


def test_it_is_far_behind_if_many_old_batches_wait() -> None:
    """Those that the owner wrote in a short time, and few, are repeated one after the other."""
    waiting = [at(number, 1_000 * number) for number in range(5, 6 + FAR_BATCHES)]
    apart = [replace(one, judged=replace(one.judged, late=True)) for one in waiting if one.judged]
    assert following(written(4)).is_far_behind(tail(*apart), MOST)
    assert not following(written(4)).is_far_behind(tail(*waiting), MOST)
    assert not following(written(4)).is_far_behind(tail(*apart[1:]), MOST)
    assert not following(written(4)).is_far_behind(tail(), MOST)
    quick = [replace(one, written_at_ms=Millis(99_000)) for one in apart]
    assert not following(written(4)).is_far_behind(tail(*quick), MOST)


def test_the_newest_batch_is_reached_at_once() -> None:
    """The first marker of a new incarnation has none: it is passed over afterwards."""
    markers, last = following(written(4)), with_new(written(6), 0)
    first = begun(last)
    markers.poll(tail(written(5), last, first))
    assert markers.newest() == last
    markers.built(last)
    assert markers.next(tail(), MOST, runs=True) is None
    assert markers.running == first
    assert markers.is_empty
    lost = following(written(4))
    lost.poll(tail(replace(written(5), end={CARS: Offset(60)}, state="another")))
    with pytest.raises(NotToFollowError, match="another plan"):
        lost.newest()
    assert lost.is_whole
