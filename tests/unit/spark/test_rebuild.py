from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError, MedusaError, RefusedError, RetryError
from pipeline.ids import BatchId, Epoch, Incarnation, Millis, Offset, StreamName, TopicName
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.positions import InputPartition
from pipeline.lanes.start import Rebuild, Wanted, first_marker
from pipeline.spark.rebuild import Rebuilding, with_letters

AT = InputPartition(StreamName("cars"), TopicName("car-sightings"), 0)
WANTED = Wanted(Epoch(1), "digest", stateful=True, on_change=None, place="here")
MARKER = first_marker(WANTED, Incarnation("one"), {AT: Offset(5)}, Millis(0))
DONE = BatchFacts(
    batch=BatchId(0),
    end={AT: Offset(5)},
    late_ms=None,
    eviction_ms=None,
    advance_ms=None,
    records=5,
    bad=0,
    unknown=(),
    late=0,
    largest={},
    failed={"only": 0},
)
REBUILDING = Rebuilding(Rebuild(MARKER, None, None, "it is gone"), {AT: Offset(0)}, ())


def test_a_rebuild_that_ended_where_it_had_to_is_right() -> None:
    """Nothing is said about it."""
    REBUILDING.check(DONE)


@pytest.mark.parametrize(
    ("facts", "kind", "said"),
    [
        (replace(DONE, end={AT: Offset(4)}), BrokenInvariantError, "ended at other positions"),
        (replace(DONE, eviction_ms=Millis(7)), BrokenInvariantError, "watermark 7 instead of None"),
        (replace(DONE, late=1), BrokenInvariantError, "rows counted as late"),
        (replace(DONE, failed={"only": 9}), RetryError, "had not failed before"),
    ],
)
def test_a_state_that_is_not_what_it_has_to_be_is_not_used(
    facts: BatchFacts, kind: type[MedusaError], said: str
) -> None:
    """What a function decides may be another time; everything else is a mistake of ours."""
    with pytest.raises(kind, match=said):
        REBUILDING.check(facts)


LETTERS = TopicName("net.cars.dlq")
NEEDS = replace(MARKER, letters_from={0: Offset(4), 1: Offset(6)})
BEGIN = {AT: Offset(0)}


def test_a_rebuild_is_refused_when_dead_letters_that_it_needs_are_gone() -> None:
    """Else records that were left out would count: a pair with a row that was late."""
    start = Rebuild(NEEDS, BEGIN, None, "it is gone")
    assert with_letters(start, {0: Offset(4), 1: Offset(0)}, LETTERS) == start
    with pytest.raises(RefusedError) as caught:
        with_letters(start, {0: Offset(0), 1: Offset(7)}, LETTERS)
    assert caught.value.place == "topic net.cars.dlq, partition 1"
    assert "from offset 6 on, and the topic begins at 7" in caught.value.message
    assert "--state FRAGMENT=rebuild" in caught.value.hint
    assert "--state FRAGMENT=empty" in caught.value.hint


def test_a_rebuild_that_reads_nothing_needs_no_dead_letters() -> None:
    """A state that begins empty."""
    start = Rebuild(NEEDS, MARKER.end, None, "asked")
    assert with_letters(start, {0: Offset(9), 1: Offset(9)}, LETTERS).marker.letters_from == {}


def test_a_chosen_rebuild_goes_by_the_dead_letters_that_there_are() -> None:
    """A later one then needs the same."""
    starts = {0: Offset(9), 1: Offset(2)}
    start = with_letters(Rebuild(NEEDS, None, None, "asked"), starts, LETTERS)
    assert start.marker.letters_from == starts
