from dataclasses import replace

import pytest

from brokers.records import KafkaRecord
from pipeline.ids import Millis, TopicId
from pipeline.tentative.records import (
    TentativeRecord,
    Unread,
    decode,
    digest,
    done_marks,
    encode,
    undo_of,
)
from tests.unit.tentative.made import TOPIC_ID, as_read, generation, mark, result, undo

A_RESULT = as_read(result("a", 10))
A_MARK = as_read(mark(50))


@pytest.mark.parametrize(
    "record",
    [
        result("a", 10, of="3.12", partition=2),
        replace(result("a", 10), key=None),
        replace(result("a", 0), value=b""),
        undo("a", 10, of="3.12", partition=2),
        mark(-5, of="3.12", partition=2),
    ],
)
def test_a_record_is_read_as_it_was_written(record: TentativeRecord) -> None:
    """A record is read as it was written."""
    assert decode(as_read(record), TOPIC_ID) == record


def test_a_done_mark_has_no_event_time_of_its_own() -> None:
    """A promise may be in the future, and brokers reject such timestamps."""
    sent = encode(mark(50), TOPIC_ID)
    assert (sent.key, sent.value, sent.timestamp_ms) == (None, None, None)
    assert sent.headers == (
        ("medusa.topic", b"abc"),
        ("medusa.generation", b"1.1"),
        ("medusa.done", b"50"),
    )


def test_the_headers_of_a_result() -> None:
    """The headers of a result."""
    assert encode(result("a", 10), TOPIC_ID).headers == (
        ("medusa.topic", b"abc"),
        ("medusa.generation", b"1.1"),
        ("medusa.id", b"a"),
    )


def test_a_record_of_an_earlier_topic_is_not_read() -> None:
    """A record of an earlier topic is not read."""
    assert decode(A_RESULT, TopicId("other")) is Unread.OTHER_TOPIC


def without(record: KafkaRecord, name: str, *values: bytes | None) -> KafkaRecord:
    """A record with another value of a header, or without it."""
    others = tuple(header for header in record.headers if header[0] != name)
    return replace(record, headers=(*others, *((name, value) for value in values)))


@pytest.mark.parametrize("name", ["medusa.topic", "medusa.generation"])
def test_a_record_without_our_headers_is_foreign(name: str) -> None:
    """A record without our headers is foreign."""
    assert decode(without(A_RESULT, name), TOPIC_ID) is Unread.FOREIGN


@pytest.mark.parametrize(
    "record",
    [
        without(A_RESULT, "medusa.id"),
        without(A_RESULT, "medusa.id", b""),
        without(A_RESULT, "medusa.id", None),
        without(A_RESULT, "medusa.generation", None),
        without(A_RESULT, "medusa.generation", b"1"),
        replace(A_RESULT, timestamp_ms=Millis(-1)),
        without(A_MARK, "medusa.done", None),
        without(A_MARK, "medusa.done", b"soon"),
        without(A_MARK, "medusa.id", b"a"),
        replace(A_MARK, key=b"a"),
        replace(A_MARK, value=b"a"),
    ],
)
def test_a_damaged_record_is_named_so(record: KafkaRecord) -> None:
    """A damaged record is named so."""
    assert decode(record, TOPIC_ID) is Unread.DAMAGED


def test_a_done_mark_is_in_each_partition() -> None:
    """A done mark is in each partition."""
    assert done_marks(generation("1.1"), Millis(50), 3) == [
        mark(50, partition=partition) for partition in range(3)
    ]


def test_the_undo_of_a_result_is_in_its_place() -> None:
    """The undo of a result is in its place."""
    made = result("a", 10, of="2.3", partition=4)
    assert undo_of(made) == undo("a", 10, of="2.3", partition=4)


def test_only_equal_values_have_equal_digests() -> None:
    """Only equal values have equal digests."""
    assert digest(b"a") == digest(b"a")
    assert len({digest(b"a"), digest(b"b"), digest(b""), digest(None)}) == 4
