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
    """A span of one partition of dead letters."""
    return DeadLetterSpan(topic_id, {0: Offset(before)}, at(a, b))


MARKER = CommitMarker(
    Epoch(1), Incarnation("a"), BatchId(1), at(0), at(9), at(0), None, None, {},
    BatchId(1), None, Totals(), Millis(0), "digest", letters="id",
)  # fmt: skip


def test_dead_letters_are_needed_while_the_records_they_may_name_are() -> None:
    """A dead letter of a batch names no record at or behind the batch's end."""
    spans = after_dead_letters((), span(3, a=10), needed=at(2))
    assert letters_from(spans) == {0: 3}
    spans = after_dead_letters(spans, span(7, a=20), needed=at(9))
    assert letters_from(spans) == {0: 3}
    spans = after_dead_letters(spans, None, needed=at(10))
    assert letters_from(spans) == {0: 7}
    assert after_dead_letters(spans, None, needed=at(20)) == ()
    assert letters_from(()) == {}


def test_every_partition_of_the_inputs_counts() -> None:
    """One with an open window needs the dead letters of the batch that read it."""
    spans = after_dead_letters((), span(3, a=10, b=10), needed=at(99, 9))
    assert letters_from(spans) == {0: 3}
    assert after_dead_letters(spans, None, needed=at(99, 10)) == ()


def test_a_partition_that_is_not_needed_keeps_nothing() -> None:
    """No rebuild reads it."""
    assert after_dead_letters((span(3, a=10, b=10),), None, {A: Offset(10)}) == ()


def test_a_dead_letter_topic_with_an_added_partition() -> None:
    """For each partition the first span that contains it counts."""
    wider = DeadLetterSpan("id", {0: Offset(8), 1: Offset(0)}, at(20))
    assert letters_from((span(3, a=10), wider)) == {0: 3, 1: 0}


def test_a_lane_continues_with_all_needed_dead_letters() -> None:
    """As one span up to the marker; without needed ones, none."""
    marker = replace(MARKER, letters_from={0: Offset(4)})
    assert resume_dead_letters(marker) == (DeadLetterSpan("id", {0: Offset(4)}, at(9)),)
    assert resume_dead_letters(MARKER) == ()


def test_a_recreated_topic_counts_once_the_old_one_is_not_needed() -> None:
    """Its needed offset is returned once no removed dead letter is needed."""
    spans = after_dead_letters((), span(7, a=10, topic_id="old"), needed=at(2))
    spans = after_dead_letters(
        spans, DeadLetterSpan("new", {0: Offset(1), 1: Offset(0)}, at(20)), at(9)
    )
    assert (spans[0].topic_id, letters_from(spans)) == ("old", {0: 7})
    spans = after_dead_letters(spans, None, needed=at(10))
    assert (spans[0].topic_id, letters_from(spans)) == ("new", {0: 1, 1: 0})


def test_joined_spans_of_two_topics_keep_the_older_one() -> None:
    """Until the newer one is over as well: more is kept than is needed, never less."""
    spans: tuple[DeadLetterSpan, ...] = ()
    for n in range(SPANS_MAX + 1):
        wrote = span(100 if n == 0 else n, a=n + 1, topic_id="old" if n == 0 else "new")
        spans = after_dead_letters(spans, wrote, at(0))
    assert spans[0] == DeadLetterSpan("old", {0: Offset(100)}, at(2))
    assert spans[1] == DeadLetterSpan("new", {0: Offset(2)}, at(4))


@given(needed=st.lists(st.integers(0, 400), min_size=200, max_size=200).map(sorted))
def test_needed_offsets_are_never_too_large_and_spans_are_few(needed: list[int]) -> None:
    """Batch n reads up to n + 1 and writes dead letter n, or none; needed positions only rise."""
    spans: tuple[DeadLetterSpan, ...] = ()
    for n, floor in enumerate(needed):
        low = min(floor, n + 1)
        spans = after_dead_letters(spans, span(n, a=n + 1) if n % 7 else None, at(low))
        assert len(spans) <= SPANS_MAX
        first = next((m for m in range(n + 1) if m % 7 and m >= low), None)
        if first is not None:
            assert letters_from(spans)[0] <= first
    assert after_dead_letters(spans, None, at(10**6)) == ()


def test_needed_offsets_from_a_marker_of_its_topic_and_of_another() -> None:
    """Without need everything may be deleted; of a recreated topic nothing."""
    ends = {0: Offset(8), 1: Offset(5)}
    marker = replace(MARKER, letters_from={0: Offset(4)})
    assert kept_from(MARKER, "id", ends) == ends
    assert kept_from(marker, "id", ends) == {0: 4, 1: 5}
    assert kept_from(marker, "again", ends) == {0: 0, 1: 0}
    assert kept_from(MARKER, "again", ends) == ends


def test_the_first_partition_that_lacks_needed_dead_letters() -> None:
    """The missing offset, and the first one that exists."""
    needed = {0: Offset(4), 1: Offset(6)}
    assert first_gone(needed, {0: Offset(4), 1: Offset(0)}) is None
    assert first_gone(needed, {0: Offset(0), 1: Offset(7)}) == (1, 6, 7)
    assert first_gone({}, {0: Offset(7)}) is None
