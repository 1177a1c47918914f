from dataclasses import replace

from pipeline.ids import (
    BatchId,
    Epoch,
    FragmentName,
    Incarnation,
    Millis,
    Offset,
    StreamName,
    TopicName,
)
from pipeline.lanes.acknowledged import lost_input, lost_output
from pipeline.markers.commit_marker import CommitMarker, Totals
from pipeline.markers.cut import Cut
from pipeline.markers.positions import InputPartition

IN, OUT, NAME = TopicName("sightings"), TopicName("speeds"), FragmentName("speed")
ENDS = {InputPartition(StreamName("cars"), IN, p): Offset(9) for p in range(2)}
MARKER = CommitMarker(
    Epoch(1), Incarnation("a"), BatchId(1), ENDS, ENDS, ENDS, None, None, {},
    BatchId(1), None, Totals(), Millis(0), "digest",
    output="id", output_ends={0: Offset(4), 1: Offset(7)},
)  # fmt: skip


def test_topics_that_contain_all_acknowledged_records() -> None:
    """More records are accepted, and a partition without a leader is not checked."""
    assert lost_input(MARKER, {IN: {0: Offset(9), 1: Offset(12)}}, NAME) is None
    assert lost_input(MARKER, {IN: {1: Offset(9)}}, NAME) is None
    assert lost_input(MARKER, {}, NAME) is None
    assert lost_output(MARKER, OUT, "id", {OUT: {0: Offset(4), 1: Offset(8)}}, NAME) is None
    assert lost_output(MARKER, OUT, "id", {OUT: {0: Offset(4)}}, NAME) is None
    assert lost_output(MARKER, OUT, "id", {}, NAME) is None


def test_an_input_that_ends_below_the_read_position() -> None:
    """Records written there next would have offsets that count as read."""
    found = lost_input(MARKER, {IN: {0: Offset(9), 1: Offset(8)}}, NAME)
    assert found is not None
    assert found.place == "topic sightings, partition 1"
    assert "before offset 9 was read, but the topic ends at 8" in found.message
    assert "--state speed=empty" in found.hint


def test_an_input_that_ends_below_the_cut_of_the_next_batch() -> None:
    """Results of its records may be visible, so the batch cannot be repeated alike."""
    cut = replace(MARKER, cut=Cut("1.2", {at: Offset(12) for at in ENDS}, None, 1))
    assert lost_input(cut, {IN: {0: Offset(12), 1: Offset(12)}}, NAME) is None
    found = lost_input(cut, {IN: {0: Offset(12), 1: Offset(9)}}, NAME)
    assert found is not None
    assert found.place == "topic sightings, partition 1"


def test_an_output_that_ends_below_the_written_position() -> None:
    """The lane would continue as if its readers had all of it."""
    found = lost_output(MARKER, OUT, "id", {OUT: {0: Offset(4), 1: Offset(6)}}, NAME)
    assert found is not None
    assert found.place == "topic speeds, partition 1"
    assert "before offset 7 was written and acknowledged, but the topic ends at 6" in found.message
    assert "--state speed=empty" in found.hint


def test_positions_in_another_topic_do_not_count() -> None:
    """An output that was renamed, or recreated by a choice."""
    assert (
        lost_output(replace(MARKER, output="old"), OUT, "id", {OUT: {0: Offset(0)}}, NAME) is None
    )
