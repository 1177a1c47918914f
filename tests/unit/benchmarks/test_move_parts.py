"""Parts of the pauses of moves."""

import doctest

from benchmarks import move_parts
from benchmarks.move_parts import Entry, Written, parts_ms, parts_text

MARKERS = [Written(1, 1_000), Written(1, 1_500), Written(2, 2_400), Written(2, 3_000)]
ENTRIES = [Entry("released", 1, 1_700), Entry("claimed", 2, 1_950)]


def test_examples_in_docstrings_hold() -> None:
    """The doctests of the module pass."""
    assert doctest.testmod(move_parts).failed == 0


def test_parts_go_from_the_last_marker_to_the_first_batch() -> None:
    """Together they are the time between two batches."""
    assert parts_ms(MARKERS, ENTRIES) == [(200, 250, 450, 600)]


def test_a_change_that_is_not_whole_has_no_parts() -> None:
    """As when markers were compacted away, the move has not ended, or a node was killed."""
    assert parts_ms(MARKERS[:3], ENTRIES) == []
    assert parts_ms([*MARKERS[:3], Written(3, 3_000)], ENTRIES) == []
    assert parts_ms(MARKERS, ENTRIES[:1]) == []
    assert parts_ms(MARKERS, ENTRIES[1:]) == []


def test_no_parts_are_said_to_be_none() -> None:
    """Instead of a median of nothing."""
    assert parts_text([]).startswith("no change of the owner")
