from dataclasses import replace

import pytest

from pipeline.errors import BrokenInvariantError, RetryError
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
    StreamName,
    TopicName,
)
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.lanes.result_headers import LATE_RESULT
from pipeline.markers.positions import InputPartition
from pipeline.names import FragmentNames
from pipeline.spark.batch.rejected import (
    Rejected,
    check_decided_alike,
    check_in_time,
    check_late,
    refused_checksum,
)
from pipeline.spark.query.checksums import checksum
from pipeline.spark.query.reasons import Why
from tests.unit.lanes.marked import marked

NAMES = FragmentNames(
    FragmentId(NetworkId(ParticipantId("local"), NetworkName("net")), FragmentName("moving"))
)
BOXES = {"only": (BoxName("rated"), BoxName("priced")), "left": (BoxName("other"),)}
RECORD = Rejected(
    input=StreamName("sightings"),
    port="",
    why=Why(Reason.UNDECODABLE, "told"),
    topic=TopicName("car-sightings"),
    partition=0,
    offset=Offset(5),
    timestamp_ms=Millis(1),
    key=b"k",
    value=b"broken",
    headers=(("medusa.error.attempt", b"4"),),
)


@pytest.mark.parametrize(
    ("topic", "attempt"), [("car-sightings", 1), ("local.net.moving.redrive", 5)]
)
def test_only_a_record_of_the_redrive_topic_was_tried_before(topic: str, attempt: int) -> None:
    """Such a header of an input's record is a foreign one."""
    record = replace(RECORD, topic=TopicName(topic))
    sources = marked({InputPartition(RECORD.input, record.topic, 0): 0})
    context = record.letter(NAMES, NetworkVersion(1), sources).context
    assert context.attempt == attempt
    assert (context.source, context.topic_id) == (f"id of {topic}/0", f"id of {topic}")


def refused(offset: int, port: str = "only", reason: Reason = Reason.EVALUATION_FAILED) -> Rejected:
    """A record that a function has refused."""
    why = Why(reason, "told", box="rated", field="function")
    return replace(RECORD, offset=Offset(offset), port=port, why=why)


def summed(*offsets: int) -> int:
    """The query's summary of records that failed in it."""
    return sum(checksum(RECORD.topic, RECORD.partition, Offset(offset)) for offset in offsets)


def test_functions_that_refuse_the_same_records_twice_are_accepted() -> None:
    """Whatever else was refused, or late."""
    others = [RECORD, refused(9, reason=Reason.LATE), refused(9, "left.2")]
    check_decided_alike({"only": summed(5, 7)}, [refused(7), refused(5), *others], BOXES)
    check_decided_alike({}, [refused(7), *others], {})


@pytest.mark.parametrize("again", [(5,), (5, 8), (5, 7, 8), ()])
def test_a_function_that_decides_otherwise_is_detected(again: tuple[int, ...]) -> None:
    """Fewer, more or others: nothing may be written, since a row would be lost or duplicated."""
    with pytest.raises(RetryError, match="failed for other records when it was called again") as e:
        check_decided_alike({"only": summed(5, 7)}, [refused(offset) for offset in again], BOXES)
    assert e.value.place == "box rated, priced"
    assert "mend it and deploy" in e.value.hint


def test_the_checksum_of_refused_records_is_independent_of_their_order() -> None:
    """Another place, path or reason is another decision, and leads to another state."""
    base = [refused(5), refused(7, reason=Reason.LATE)]
    assert refused_checksum(base) == refused_checksum(reversed(base))
    others = [
        [],
        base[:1],
        [*base, refused(9)],
        [replace(base[0], offset=Offset(6)), base[1]],
        [replace(base[0], partition=1), base[1]],
        [replace(base[0], topic=TopicName("other")), base[1]],
        [replace(base[0], port="left"), base[1]],
        [refused(5, reason=Reason.UNDECODABLE), base[1]],
    ]
    assert len({refused_checksum(one) for one in (base, *others)}) == 1 + len(others)


@pytest.mark.parametrize(
    ("found", "dropped", "said"),
    [
        ([refused(5)], True, "a second look finds no late record"),
        ([refused(5, reason=Reason.LATE)], False, "offset 5 is late, and no row of its batch"),
    ],
)
def test_the_query_and_the_inspection_have_to_agree_on_late_records(
    found: list[Rejected],
    dropped: bool,  # noqa: FBT001 - a parameter
    said: str,
) -> None:
    """Otherwise a record is lost without a dead letter, or counts and has one."""
    check_late(found, "here", dropped=not dropped)
    with pytest.raises(BrokenInvariantError, match=said) as caught:
        check_late(found, "here", dropped=dropped)
    assert (caught.value.place, bool(caught.value.hint)) == ("here", True)


def late(at_ms: int, topic: str = "tolls-topic", reason: Reason = Reason.LATE) -> Rejected:
    """A record of the derived stream `tolls` that was late."""
    why = Why(reason, "told", event_time_ms=Millis(at_ms))
    return replace(RECORD, input=StreamName("tolls"), topic=TopicName(topic), why=why)


def test_a_late_record_of_a_derived_stream_breaks_a_promise() -> None:
    """Not a redriven one, one of another stream, or one that is refused otherwise."""
    at = InputPartition(StreamName("tolls"), TopicName("tolls-topic"), 0)
    promised = {StreamName("tolls"): Millis(5)}.get
    sources = marked({at: 0, replace(at, topic=NAMES.redrive): 0})
    for reason in (Reason.LATE, Reason.PARTLY_LATE):
        with pytest.raises(BrokenInvariantError, match="derived stream tolls was late") as caught:
            check_in_time([late(5, reason=reason)], sources, promised)
        assert caught.value.place == "topic tolls-topic, partition 0, offset 5"
    check_in_time([late(5, NAMES.redrive), RECORD], sources, promised)
    check_in_time([late(5, reason=Reason.UNDECODABLE)], sources, promised)
    check_in_time([late(5)], (), promised)


def test_a_derived_record_may_be_late_above_its_writers_promise() -> None:
    """Event time advanced without its stream, which was idle; or no promise counted yet."""
    at = InputPartition(StreamName("tolls"), TopicName("tolls-topic"), 0)
    sources = marked({at: 0})
    check_in_time([late(6)], sources, {StreamName("tolls"): Millis(5)}.get)
    check_in_time([late(5)], sources, {StreamName("other"): Millis(5)}.get)


def test_a_derived_record_that_is_marked_may_be_late() -> None:
    """Its writer keeps no state, and has passed it on."""
    at = InputPartition(StreamName("tolls"), TopicName("tolls-topic"), 0)
    marked_late = replace(late(5), headers=((LATE_RESULT, b"7"),))
    check_in_time([marked_late], marked({at: 0}), {StreamName("tolls"): Millis(7)}.get)


def test_a_derived_record_of_a_settled_time_may_be_late() -> None:
    """The reader had settled it itself, before it read the stream or under another plan."""
    at = InputPartition(StreamName("tolls"), TopicName("tolls-topic"), 0)
    (source,) = marked({at: 0})
    promised = {StreamName("tolls"): Millis(9)}.get
    for settled in (replace(source, skipped_ms=Millis(7)), replace(source, settled_ms=Millis(7))):
        check_in_time([late(7), late(6, reason=Reason.PARTLY_LATE)], [settled], promised)
        with pytest.raises(BrokenInvariantError):
            check_in_time([late(8)], [settled], promised)
