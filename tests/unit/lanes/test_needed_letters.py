from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.needed_letters import (
    SPANS_MAX,
    DeadLetterSpan,
    after_dead_letters,
    first_gone,
    kept_from,
    letters_from,
    resume_dead_letters,
)
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.positions import InputPartition, Positions

A, B = (InputPartition(StreamName("cars"), TopicName("sightings"), n) for n in range(2))


def at(a: int, b: int = 0) -> Positions:
    """Positions in both partitions."""
    return {A: Offset(a), B: Offset(b)}


def span(before: int, a: int, b: int = 0, topic_id: str = "id") -> DeadLetterSpan:
    """Of one partition of dead letters."""
    return DeadLetterSpan(topic_id, {0: Offset(before)}, at(a, b))


MARKER = CommitMarker(
    Epoch(1), Incarnation("a"), BatchId(1), at(0), at(9), at(0), None, None, {},
    BatchId(1), None, Totals(), Millis(0), "digest", letters="id",
)  # fmt: skip


def test_letters_are_needed_until_what_they_may_name_is_not() -> None:
    """A letter of a batch names no record at or behind the batch's end."""
    spans = after_dead_letters((), span(3, a=10), needed=at(2))
    assert letters_from(spans) == {0: 3}
    spans = after_dead_letters(spans, span(7, a=20), needed=at(9))
    assert letters_from(spans) == {0: 3}
    spans = after_dead_letters(spans, None, needed=at(10))
    assert letters_from(spans) == {0: 7}
    assert after_dead_letters(spans, None, needed=at(20)) == ()
    assert letters_from(()) == {}


def test_every_partition_of_the_inputs_counts() -> None:
    """One that holds an open window needs the letters of the batch that read it."""
    spans = after_dead_letters((), span(3, a=10, b=10), needed=at(99, 9))
    assert letters_from(spans) == {0: 3}
    assert after_dead_letters(spans, None, needed=at(99, 10)) == ()


def test_a_partition_that_is_not_needed_at_all_keeps_nothing() -> None:
    """No rebuild reads it."""
    assert after_dead_letters((span(3, a=10, b=10),), None, {A: Offset(10)}) == ()


def test_dead_letters_that_gain_a_partition() -> None:
    """Of each partition the first span counts that knows it."""
    wider = DeadLetterSpan("id", {0: Offset(8), 1: Offset(0)}, at(20))
    assert letters_from((span(3, a=10), wider)) == {0: 3, 1: 0}


def test_a_lane_goes_on_with_all_that_was_needed() -> None:
    """As one span up to where the marker stands; without need, without any."""
    marker = replace(MARKER, letters_from={0: Offset(4)})
    assert resume_dead_letters(marker) == (DeadLetterSpan("id", {0: Offset(4)}, at(9)),)
    assert resume_dead_letters(MARKER) == ()


def test_of_a_topic_that_was_made_again_nothing_counts_before_the_old_one_is_over() -> None:
    """What is needed of it is told once no letter that is gone is needed."""
    spans = after_dead_letters((), span(7, a=10, topic_id="old"), needed=at(2))
    spans = after_dead_letters(
        spans, DeadLetterSpan("new", {0: Offset(1), 1: Offset(0)}, at(20)), at(9)
    )
    assert (spans[0].topic_id, letters_from(spans)) == ("old", {0: 7})
    spans = after_dead_letters(spans, None, needed=at(10))
    assert (spans[0].topic_id, letters_from(spans)) == ("new", {0: 1, 1: 0})


def test_joined_spans_of_two_topics_keep_the_older_ones() -> None:
    """Until the newer one is over as well: more is kept than is needed, never less."""
    spans: tuple[DeadLetterSpan, ...] = ()
    for n in range(SPANS_MAX + 1):
        wrote = span(100 if n == 0 else n, a=n + 1, topic_id="old" if n == 0 else "new")
        spans = after_dead_letters(spans, wrote, at(0))
    assert spans[0] == DeadLetterSpan("old", {0: Offset(100)}, at(2))
    assert spans[1] == DeadLetterSpan("new", {0: Offset(2)}, at(4))


@given(needed=st.lists(st.integers(0, 400), min_size=200, max_size=200).map(sorted))
def test_never_less_than_is_needed_and_never_many_spans(needed: list[int]) -> None:
    """Batch n reads up to n + 1 and writes letter n, or none; the needed position only rises."""
    spans: tuple[DeadLetterSpan, ...] = ()
    for n, floor in enumerate(needed):
        low = min(floor, n + 1)
        spans = after_dead_letters(spans, span(n, a=n + 1) if n % 7 else None, at(low))
        assert len(spans) <= SPANS_MAX
        first = next((m for m in range(n + 1) if m % 7 and m >= low), None)
        if first is not None:
            assert letters_from(spans)[0] <= first
    assert after_dead_letters(spans, None, at(10**6)) == ()


def test_what_a_marker_keeps_of_its_topic_and_of_another() -> None:
    """Where nothing is needed everything may go; of a topic made again nothing."""
    ends = {0: Offset(8), 1: Offset(5)}
    marker = replace(MARKER, letters_from={0: Offset(4)})
    assert kept_from(MARKER, "id", ends) == ends
    assert kept_from(marker, "id", ends) == {0: 4, 1: 5}
    assert kept_from(marker, "again", ends) == {0: 0, 1: 0}
    assert kept_from(MARKER, "again", ends) == ends


def test_the_first_partition_that_lacks_needed_letters() -> None:
    """What is not there, and where the topic begins instead."""
    needed = {0: Offset(4), 1: Offset(6)}
    assert first_gone(needed, {0: Offset(4), 1: Offset(0)}) is None
    assert first_gone(needed, {0: Offset(0), 1: Offset(7)}) == (1, 6, 7)
    assert first_gone({}, {0: Offset(7)}) is None
