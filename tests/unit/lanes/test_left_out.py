from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError, NewerFormatError
from pipeline.ids import (
    BoxName,
    FragmentName,
    Millis,
    NetworkName,
    NetworkVersion,
    Offset,
    ParticipantId,
    StreamName,
    TopicName,
)
from pipeline.lanes.dead_letters import Context, headers
from pipeline.lanes.left_out import LeftOut, left_out, within
from pipeline.lanes.positions import InputPartition
from pipeline.names import FragmentNames

NAMES = FragmentNames(ParticipantId("local"), NetworkName("net"), FragmentName("box"))
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
)


def test_a_dead_letter_of_a_newer_version_is_refused() -> None:
    """A rebuild must not guess which record it stands for; what is no number says nothing."""
    others = tuple(h for h in headers(NAMES, LATE, ()) if h[0] != "medusa.error.format")
    with pytest.raises(NewerFormatError, match="dead letter: format 2, this one reads up to 1"):
        left_out((*others, ("medusa.error.format", b"2")), "here")
    for told in ((), (("medusa.error.format", b"two"),), (("medusa.error.format", b"9" * 5000),)):
        assert left_out((*others, *told), "here") == LeftOut(AT, Offset(7), "left")


def test_a_dead_letter_names_the_record_that_it_keeps() -> None:
    """What is written into the headers is read out of them."""
    found = left_out(headers(NAMES, LATE, (("theirs", b"x"),)), "here")
    assert found == LeftOut(AT, Offset(7), "left")


def test_a_result_stands_for_no_record() -> None:
    """It was computed from many; none of them is left out."""
    result = Context(
        "evaluation_failed", "no", BoxName("b"), None, "", None, None, None, Millis(5),
        NetworkVersion(1),
    )  # fmt: skip
    assert left_out(headers(NAMES, result, ()), "here") is None


def test_a_record_that_counts_in_some_windows_is_not_left_out() -> None:
    """A rebuild that left it out would take it from windows that it was counted in."""
    partly = replace(LATE, reason="partly_late")
    assert left_out(headers(NAMES, partly, ()), "here") is None


def test_damaged_headers_are_named() -> None:
    """A rebuild that guessed would not be exact."""
    broken = tuple((k, b"x" if k.endswith("offset") else v) for k, v in headers(NAMES, LATE, ()))
    with pytest.raises(BrokenInvariantError, match="here"):
        left_out(broken, "here")


def test_only_what_lies_in_the_range_counts() -> None:
    """The start belongs to a range, the end does not; other partitions are none of it."""
    one = LeftOut(AT, Offset(7), "")
    assert within(one, {AT: Offset(7)}, {AT: Offset(8)})
    assert not within(one, {AT: Offset(8)}, {AT: Offset(9)})
    assert not within(one, {AT: Offset(0)}, {AT: Offset(7)})
    assert not within(one, {}, {})
