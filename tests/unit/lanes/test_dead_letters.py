from dataclasses import replace

import pytest

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
    SchemaId,
    StreamName,
    TopicName,
)
from pipeline.lanes.dead_letters import MESSAGE_MAX, PREFIX, Context, attempt_of, headers
from pipeline.names import FragmentNames

NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("tolls")), FragmentName("moving"))
)
CONTEXT = Context(
    reason="undecodable",
    message="the bytes are no Sighting",
    box=BoxName("moving"),
    input=StreamName("sightings"),
    port="",
    topic=TopicName("car-sightings"),
    partition=2,
    offset=Offset(17),
    timestamp_ms=Millis(1_700_000_000_000),
    version=NetworkVersion(3),
)


def test_original_headers_come_first_unchanged() -> None:
    """Order and repetition of the original's headers are kept."""
    original = (("trace", b"1"), ("trace", b"2"), ("none", None))
    assert headers(NAMES, CONTEXT, original)[:3] == original


def test_the_context_contains_place_and_reason() -> None:
    """Everything needed to find the original."""
    found = dict(headers(NAMES, CONTEXT, ()))
    assert found[f"{PREFIX}reason"] == b"undecodable"
    assert found[f"{PREFIX}message"] == b"the bytes are no Sighting"
    assert found[f"{PREFIX}topic"] == b"car-sightings"
    assert found[f"{PREFIX}partition"] == b"2"
    assert found[f"{PREFIX}offset"] == b"17"
    assert found[f"{PREFIX}port"] == b""
    assert found[f"{PREFIX}format"] == b"1"


def test_an_earlier_context_is_replaced() -> None:
    """A redriven record that fails again has one context, the newest."""
    first = headers(NAMES, CONTEXT, ())
    again = headers(NAMES, replace(CONTEXT, attempt=2), first)
    attempts = [value for name, value in again if name == f"{PREFIX}attempt"]
    assert attempts == [b"2"]


def test_a_failed_result_names_no_record() -> None:
    """A result of a window or a join has no single original."""
    context = replace(CONTEXT, input=None, topic=None, partition=None, offset=None)
    found = dict(headers(NAMES, context, ()))
    assert f"{PREFIX}offset" not in found
    assert found[f"{PREFIX}box"] == b"moving"


def test_a_result_of_an_as_of_join_names_the_record_of_its_row() -> None:
    """The values of the table are bytes and are copied unchanged."""
    context = replace(
        CONTEXT, topic=None, partition=None, offset=None, row="in/1/7", held=b"\xff\x00",
        held_by="1:a", first="in/0/3",
    )  # fmt: skip
    plain, found = dict(headers(NAMES, CONTEXT, ())), dict(headers(NAMES, context, ()))
    assert {name: value for name, value in found.items() if name not in plain} == {
        f"{PREFIX}row": b"in/1/7",
        f"{PREFIX}held": b"\xff\x00",
        f"{PREFIX}held_by": b"1:a",
        "medusa.redriven.origin": b"in/0/3",
    }


def test_only_existing_details_of_the_reason_are_written() -> None:
    """A field, a schema or times, if there are any."""
    more = replace(
        CONTEXT,
        field="select.toll",
        schema=SchemaId(7),
        event_time_ms=Millis(5),
        closed_ms=Millis(9),
    )
    plain, found = dict(headers(NAMES, CONTEXT, ())), dict(headers(NAMES, more, ()))
    added = {name: value for name, value in found.items() if name not in plain}
    assert added == {
        f"{PREFIX}field": b"select.toll",
        f"{PREFIX}schema": b"7",
        f"{PREFIX}event_time": b"5",
        f"{PREFIX}closed": b"9",
    }


def test_a_message_is_one_line_of_bounded_length() -> None:
    """Expressions may be as long as a document."""
    found = dict(headers(NAMES, replace(CONTEXT, message="a\n  b " + "x" * 9_999), ()))
    message = found[f"{PREFIX}message"]
    assert message is not None
    assert message.decode().startswith("a b xxx")
    assert message.decode().endswith("…")
    assert len(message.decode()) == MESSAGE_MAX


@pytest.mark.parametrize(
    ("header", "attempt"), [(None, 2), (b"1", 2), (b"7", 8), (b"many", 2), (b"", 2)]
)
def test_a_redriven_record_fails_with_the_next_attempt(header: bytes | None, attempt: int) -> None:
    """Without a number it was the first."""
    assert attempt_of((("trace", b"9"), (f"{PREFIX}attempt", header))) == attempt
