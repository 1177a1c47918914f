from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError, NewerFormatError
from pipeline.ids import (
    BoxName,
    FragmentId,
    FragmentName,
    Millis,
    NetworkId,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    SourceId,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, headers
from pipeline.lanes.left_out import LeftOut, left_out, sent_again, within
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from tests.unit.lanes.marked import marked

NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("net")), FragmentName("box"))
)
AT = InputPartition(StreamName("cars"), TopicName("sightings"), 2)
LATE = Context(
    reason="late",
    message="too late",
    box=BoxName("box"),
    input=AT.input,
    port="left",
    topic=AT.topic,
    partition=AT.partition,
    offset=Offset(7),
    timestamp_ms=Millis(5),
    version=NetworkVersion(1),
    topic_id=TopicId("id of sightings"),
    source=SourceId("id of sightings/0"),
)
SOURCES = marked({AT: 0})


def test_a_dead_letter_of_a_newer_version_is_refused() -> None:
    """A rebuild must not guess which record it names; a value that is no number is ignored."""
    others = tuple(h for h in headers(NAMES, LATE, ()) if h[0] != "medusa.error.format")
    with pytest.raises(NewerFormatError, match="dead letter: format 2, this one reads up to 1"):
        left_out((*others, ("medusa.error.format", b"2")), SOURCES, "here")
    for format_headers in (
        (),
        (("medusa.error.format", b"two"),),
        (("medusa.error.format", b"9" * 5000),),
    ):
        assert left_out((*others, *format_headers), SOURCES, "here") == LeftOut(
            AT, Offset(7), "left"
        )


def test_a_dead_letter_names_the_record_that_it_contains() -> None:
    """The place written into the headers is read from them."""
    found = left_out(headers(NAMES, LATE, (("theirs", b"x"),)), SOURCES, "here")
    assert found == LeftOut(AT, Offset(7), "left")


def test_names_of_streams_and_topics_are_labels() -> None:
    """The record is found under the present names; one of another topic is not."""
    written = headers(NAMES, LATE, ())
    now = InputPartition(StreamName("vehicles"), TopicName("moved"), 2)
    (renamed,) = marked({now: 0}, ids={now.topic: "id of sightings"})
    assert left_out(written, (renamed,), "here") == LeftOut(now, Offset(7), "left")
    (made_again,) = marked({AT: 0}, ids={AT.topic: "another id"})
    assert left_out(written, (made_again,), "here") is None
    assert left_out(written, (), "here") is None


def redriven(**more: str) -> tuple[tuple[str, bytes], ...]:
    """The headers of the redriven record."""
    found = {
        "medusa.error.format": "1",
        "medusa.error.source": "id of sightings/0",
        "medusa.error.port": "left",
        "medusa.redriven.from": "0/3",
        "medusa.redriven.origin": "sightings/2/7",
        **more,
    }
    return tuple((name, value.encode()) for name, value in found.items())


def test_a_redriven_record_names_its_first_place() -> None:
    """For the source that reads it; a record of another program names nothing."""
    assert sent_again(redriven(), SOURCES, "here") == LeftOut(AT, Offset(7), "left")
    other = redriven(**{"medusa.error.source": "id of sightings/1"})
    assert sent_again(other, SOURCES, "here") is None
    elsewhere = redriven(**{"medusa.redriven.origin": "cars.redrive/0/7"})
    assert sent_again(elsewhere, SOURCES, "here") is None
    assert sent_again((("theirs", b"x"), ("empty", None)), SOURCES, "here") is None


def test_a_redriven_record_with_damaged_headers_is_refused() -> None:
    """Also one of a newer version."""
    for origin in ("sightings/2", "sightings/two/7"):
        with pytest.raises(BrokenInvariantError, match="sent again are damaged"):
            sent_again(redriven(**{"medusa.redriven.origin": origin}), SOURCES, "here")
    with pytest.raises(NewerFormatError):
        sent_again(redriven(**{"medusa.error.format": "2"}), SOURCES, "here")


def test_a_result_names_no_record() -> None:
    """It was computed from many; none of them is skipped."""
    result = Context(
        "evaluation_failed", "no", BoxName("b"), None, "", None, None, None, Millis(5),
        NetworkVersion(1),
    )  # fmt: skip
    assert left_out(headers(NAMES, result, ()), SOURCES, "here") is None


def test_a_record_that_counts_in_some_windows_is_not_skipped() -> None:
    """A rebuild that skipped it would remove it from windows that it was counted in."""
    partly = replace(LATE, reason="partly_late")
    assert left_out(headers(NAMES, partly, ()), SOURCES, "here") is None


def test_damaged_headers_are_named() -> None:
    """A rebuild that guessed would not be exact."""
    broken = tuple((k, b"x" if k.endswith("offset") else v) for k, v in headers(NAMES, LATE, ()))
    with pytest.raises(BrokenInvariantError, match="here"):
        left_out(broken, SOURCES, "here")


def test_only_dead_letters_within_the_range_count() -> None:
    """The start is inclusive, the end exclusive; other partitions do not count."""
    one = LeftOut(AT, Offset(7), "")
    assert within(one, {AT: Offset(7)}, {AT: Offset(8)})
    assert not within(one, {AT: Offset(8)}, {AT: Offset(9)})
    assert not within(one, {AT: Offset(0)}, {AT: Offset(7)})
    assert not within(one, {}, {})
