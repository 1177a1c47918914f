"""Which batch of its owner a follower repeats next."""

from dataclasses import replace

import pytest

from pipeline.ids import BatchId, Incarnation, Millis, Offset
from pipeline.lanes.following import (
    Grow,
    Hole,
    Lost,
    PassOver,
    Repeat,
    cannot_reach,
    follow,
    grown,
    repeats,
    results_of,
    succeeds,
)
from pipeline.markers.commit_marker import CommitMarker, Judged, Totals
from pipeline.markers.gap import Gap
from tests.unit.lanes.start.test_decision import CARS, NEW, ends, marker

MOST = 1_000


def written(batch: int) -> CommitMarker:
    """The marker of a batch, which begins where the one before has ended."""
    return replace(marker(batch), start=ends(batch - 1), totals=Totals(records_out=3 * batch))


def test_the_next_batch_is_repeated() -> None:
    """With the ends and the watermark of its marker."""
    assert follow(written(4), [written(5)], MOST) == Repeat(written(5))
    assert results_of(written(4), written(5)) == 3


def test_a_copy_and_a_batch_that_changes_no_state_are_passed_over() -> None:
    """A new owner commits a copy; Spark does not run a batch without records and watermark."""
    copy = replace(written(4), written_at_ms=Millis(9))
    assert follow(written(4), [copy], MOST) == PassOver(copy)
    at = written(4)
    same = replace(written(5), start=at.end, end=at.end, eviction_ms=at.eviction_ms)
    same = replace(same, totals=at.totals)
    assert follow(written(4), [same], MOST) == PassOver(same)
    by_clock = replace(same, eviction_ms=Millis(99_000))
    assert follow(written(4), [by_clock], MOST) == Repeat(by_clock)


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (replace(written(5), incarnation=Incarnation("two")), "incarnation two"),
        (replace(written(5), anew="local.tolls/1"), "incarnation"),
        (replace(written(5), plan="another"), "another plan"),
        (replace(written(5), state="another"), "another plan"),
        (replace(written(5), end={**ends(5), NEW: Offset(1)}), "other partitions"),
        (replace(written(4), end={CARS: Offset(51)}), "two markers"),
        (replace(written(4), eviction_ms=Millis(4_001)), "two markers"),
        (written(3), "batch 3 follows batch 4"),
        (replace(written(5), start=ends(3)), "begins elsewhere"),
        (replace(written(5), judged=None), "no decisions"),
        (
            replace(written(5), start=ends(4), end=ends(4), eviction_ms=Millis(4_000)),
            "changed nothing, and has results",
        ),
    ],
)
def test_what_does_not_follow_is_not_repeated(after: CommitMarker, why: str) -> None:
    """Then the state is built again from the log."""
    found = follow(written(4), [after], MOST)
    assert isinstance(found, Lost)
    assert why in found.why


def test_markers_that_compaction_has_removed_end_nothing() -> None:
    """What is missing is read at once, up to a later marker; one of another plan is not reached."""
    assert follow(written(4), [written(6)], MOST) == Hole()
    assert repeats(written(3), [written(4), written(6)], MOST) == 1
    assert cannot_reach(written(4), [written(6)]) == ""
    assert isinstance(follow(written(4), [replace(written(6), plan="another")], MOST), Lost)


def with_new(one: CommitMarker, begin: int, end: int | None = None) -> CommitMarker:
    """A marker with another partition."""
    last = Offset(begin if end is None else end)
    return replace(one, start={**one.start, NEW: Offset(begin)}, end={**one.end, NEW: last})


def test_new_partitions_are_read_once_the_owner_reads_them() -> None:
    """The state is the same; the first marker after the owner's restart may be gone."""
    at, after = written(4), with_new(written(5), 0, 3)
    copy = with_new(written(4), 0)
    larger = grown(at, copy)
    assert larger.end == {**at.end, NEW: 0}
    assert larger.needed[NEW] == 0
    assert follow(at, [copy, after], MOST) == Grow(larger)
    assert follow(at, [after], MOST) == Grow(larger)
    assert follow(larger, [copy, after], MOST) == PassOver(copy)
    assert follow(larger, [after], MOST) == Repeat(after)
    assert repeats(written(3), [written(4), copy, after], MOST) == 2
    assert cannot_reach(written(3), [written(4), copy, after]) == ""
    assert follow(written(3), [written(4), copy, after], MOST) == Repeat(written(4))


def test_a_new_incarnation_may_read_more_partitions() -> None:
    """Its lane has built the same state; it begins them at 0."""
    at = written(4)
    first = with_new(begun(at), 0)
    assert follow(at, [first], MOST) == Grow(grown(at, first))
    assert follow(grown(at, first), [first], MOST) == PassOver(first)


@pytest.mark.parametrize(
    "after",
    [
        with_new(written(5), 1),
        replace(with_new(written(5), 0, 1), plan="another"),
        replace(with_new(written(5), 0, 1), state="another"),
        replace(with_new(written(5), 0, 1), start={NEW: Offset(0)}),
    ],
)
def test_other_partitions_end_it(after: CommitMarker) -> None:
    """A checkpoint can begin a partition at 0 alone; those of another plan are other sources."""
    assert grown(written(4), after) == written(4)
    found = follow(written(4), [after], MOST)
    assert isinstance(found, Lost)
    assert found.is_whole


def test_a_state_is_whole_unless_the_log_of_markers_was_changed() -> None:
    """The next follower may begin from it if the owner has only changed its plan, for instance."""
    at = written(4)
    for after in (replace(written(5), plan="another"), with_new(written(5), 1)):
        found = follow(at, [after], MOST)
        assert isinstance(found, Lost)
        assert found.is_whole
    for after in (written(3), replace(written(4), end={CARS: Offset(51)})):
        found = follow(at, [after], MOST)
        assert isinstance(found, Lost)
        assert not found.is_whole


def test_batches_are_followed_one_by_one() -> None:
    """From the first one on."""
    at = written(0)
    for number in range(1, 5):
        step = follow(at, [written(number)], MOST)
        assert isinstance(step, Repeat)
        at = step.marker
    assert at.batch == BatchId(4)


def test_batches_that_wait_are_executed_as_one() -> None:
    """With the decisions of all: records, refused ones and their checksums are sums."""

    def judged(number: int) -> CommitMarker:
        decisions = Judged(
            10, number, late=False, refused=100 * number, failed=number, results=7 * number
        )
        return replace(written(number), judged=decisions)

    copy = replace(judged(6), written_at_ms=Millis(9))
    found = follow(written(4), [judged(5), judged(6), copy, judged(7)], MOST)
    assert isinstance(found, Repeat)
    assert found.number == 4
    assert (found.marker.batch, found.marker.end) == (7, ends(7))
    assert found.marker.start == ends(4)
    assert (found.marker.late_ms, found.marker.eviction_ms) == (judged(5).late_ms, 7_000)
    assert found.marker.judged == Judged(30, 18, late=False, refused=1_800, failed=18, results=126)
    assert results_of(written(4), found.marker) == 9
    earlier = replace(judged(6), judged=Judged(10, 0, late=False, refused=0, failed=0))
    found = follow(written(4), [judged(5), earlier], MOST)
    assert isinstance(found, Repeat)
    assert found.marker.judged is not None
    assert found.marker.judged.results is None


def test_batches_to_repeat_are_counted_up_to_a_gap() -> None:
    """Those that are executed as one count once; copies do not."""
    at, late = written(4), Judged(10, 0, late=True, refused=1, failed=0)
    five, six, seven, eight = (written(number) for number in (5, 6, 7, 8))
    copy = replace(at, written_at_ms=Millis(9))
    assert repeats(at, [], MOST) == 0
    assert repeats(at, [copy], MOST) == 0
    assert repeats(at, [copy, five, six, seven, eight], MOST) == 1
    alone = [five, replace(six, judged=late), seven, replace(eight, judged=late)]
    assert repeats(at, alone, MOST) == 4
    assert repeats(at, [five, written(7)], MOST) == 1


def test_what_has_late_records_is_executed_alone() -> None:
    """What is late depends on where the batches before it have ended."""
    late = replace(written(6), judged=Judged(10, 0, late=True, refused=1, failed=0))
    assert follow(written(4), [written(5), late], MOST) == Repeat(written(5))
    assert follow(written(5), [late, written(7)], MOST) == Repeat(late)
    waiting = [written(5), written(6), written(7)]
    found = follow(written(4), waiting, 20)
    assert isinstance(found, Repeat)
    assert found.number == 2
    gap = [written(5), written(7)]
    assert follow(written(4), gap, MOST) == Repeat(written(5))


@pytest.mark.parametrize(
    ("newest", "why"),
    [
        (written(9), ""),
        (replace(written(9), incarnation=Incarnation("two")), "incarnation two"),
        (replace(written(9), plan="another"), "another plan"),
        (replace(written(9), end={**ends(9), NEW: Offset(1)}), "other partitions"),
        (replace(written(9), judged=None), "no decisions"),
        (written(3), "is before batch 6"),
    ],
)
def test_a_later_marker_is_reached_at_once(newest: CommitMarker, why: str) -> None:
    """Also if those between are missing; not if it is of something else."""
    found = cannot_reach(written(4), [written(6), newest])
    assert why in found
    assert bool(found) is bool(why)


GAP = Gap(Incarnation("two"), (), None, Millis(5), Millis(9), Millis(1))


def begun(at: CommitMarker, incarnation: str = "two", batch: int = 0) -> CommitMarker:
    """The first marker of another incarnation, whose lane has built the state of a marker again."""
    number, name = BatchId(batch), Incarnation(incarnation)
    return replace(at, incarnation=name, batch=number, start=at.end, judged=None)


def test_a_new_incarnation_with_the_same_state_is_followed() -> None:
    """Its batches have other numbers; those of two incarnations are not executed as one."""
    at = written(4)
    first = begun(at)
    second = replace(written(5), incarnation=first.incarnation, batch=BatchId(1))
    assert succeeds(at, first)
    assert follow(at, [first, second], MOST) == PassOver(first)
    assert follow(first, [second], MOST) == Repeat(second)
    assert follow(written(3), [at, first, second], MOST) == Repeat(at)
    assert repeats(written(3), [at, first, second], MOST) == 2
    assert cannot_reach(written(3), [at, first, second]) == ""
    assert "taken the place" in cannot_reach(written(3), [first, second])
    third = begun(second, "three", 0)
    assert cannot_reach(at, [first, second, third, replace(third, judged=second.judged)]) == ""


@pytest.mark.parametrize(
    "other",
    [
        replace(begun(written(4)), chosen=True),
        replace(begun(written(4)), gap=GAP),
        replace(begun(written(4)), end=ends(5)),
        replace(begun(written(4)), eviction_ms=Millis(4_001)),
        replace(begun(written(4)), plan="another"),
        replace(begun(written(4)), state="another"),
        replace(begun(written(4)), anew="local.tolls/1"),
        replace(begun(written(4)), judged=written(4).judged),
        replace(begun(written(4)), end={**ends(4), NEW: Offset(1)}),
    ],
)
def test_an_incarnation_that_may_have_another_state_is_not_followed(other: CommitMarker) -> None:
    """As one that a user chose to begin with an empty state."""
    assert not succeeds(written(4), other)
    assert isinstance(follow(written(4), [other], MOST), Lost)
    assert cannot_reach(written(4), [other, replace(other, judged=written(4).judged)])
