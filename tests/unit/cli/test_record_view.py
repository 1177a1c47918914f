"""Records of a tail, as lines and data; `medusa tail --tentative`."""

import json
from pathlib import Path

import pytest

from brokers.records import KafkaRecord
from pipeline.cli.record_view import marked_data, marked_line, record_data, record_line
from pipeline.ids import Epoch, Millis, Offset, TopicId, TopicName
from pipeline.names import tentative_topic
from pipeline.operations.records.decoding import DecodedRecord
from pipeline.operations.records.tail_tentative import NO_OFFSET, Mark, MarkedRecord
from pipeline.tentative.generation import Generation
from pipeline.tentative.records import TentativeResult, encode
from tests.unit.cli.reports import Caller
from tests.unit.cli.twins import opener
from tests.unit.deploy.twins import NOW, World, write_project

SPEEDS, MOVING = TopicName("speeds"), TopicName("moving-cars")
TENTATIVE = KafkaRecord(SPEEDS, 1, NO_OFFSET, Millis(1_000), b"a", b"x")
DECODED = DecodedRecord(TENTATIVE, "a", {"speed": 3}, "")


def test_a_record_that_is_not_in_the_stable_topic_has_no_offset() -> None:
    """A dash in the line, null in data."""
    assert record_line(DECODED) == '1970-01-01T00:00:01.000Z  1@-  a  {"speed":3}'
    assert record_data(DECODED) == {
        "topic": "speeds",
        "partition": 1,
        "offset": None,
        "timestamp": "1970-01-01T00:00:01.000Z",
        "key": "a",
        "value": {"speed": 3},
    }


@pytest.mark.parametrize("mark", [one for one in Mark if one is not Mark.DONE])
def test_a_line_begins_with_its_mark(mark: Mark) -> None:
    """All of them have one width, so that the rest is below each other."""
    found = MarkedRecord(mark, TENTATIVE, "3.1")
    line = str(marked_line(found, DECODED))
    assert line.split(maxsplit=1)[0] == mark.value
    assert line.endswith(record_line(DECODED))
    assert line.index("1970") == len("tentative  ")
    data = marked_data(found, DECODED)
    assert (data["mark"], data["generation"], data["value"]) == (mark.value, "3.1", {"speed": 3})


def test_the_end_of_a_generation_has_no_record() -> None:
    """A correction has its number."""
    done = MarkedRecord(Mark.DONE, None, "3.1")
    assert str(marked_line(done, None)) == "done       all results of 3.1 are settled"
    assert marked_data(done, None) == {"mark": "done", "generation": "3.1"}
    corrected = marked_data(MarkedRecord(Mark.STABLE, TENTATIVE, corrects=2), DECODED)
    assert (corrected["corrects"], "generation" in corrected) == (2, False)


@pytest.fixture
def world(medusa: Caller) -> World:
    """A world with the small network deployed, and a tentative result of it."""
    found = World.new()
    write_project(Path())
    assert medusa("deploy", "--no-wait", opener=opener(found)).code == 0
    found.kafka.add(tentative_topic(MOVING))
    topic_id = TopicId(found.kafka.topics[MOVING].topic_id)
    early = TentativeResult(b"a", b"x", Millis(NOW), 1, b"id", Generation(Epoch(3), 1))
    sent = encode(early, topic_id)
    found.kafka.append(
        tentative_topic(MOVING),
        sent.key,
        sent.value,
        timestamp_ms=sent.timestamp_ms,
        headers=sent.headers,
        partition=sent.partition,
    )
    return found


def test_tail_shows_tentative_results(medusa: Caller, world: World) -> None:
    """As lines and as JSON."""
    tail = ("tail", "moving", "--tentative", "--no-follow")
    shown = medusa(*tail, opener=opener(world))
    assert shown.code == 0
    assert shown.out.startswith("tentative  ")
    assert "  1@-  a  " in shown.out
    (line,) = medusa(*tail, "-o", "json", opener=opener(world)).out.splitlines()
    found = json.loads(line)
    assert (found["mark"], found["generation"], found["offset"]) == ("tentative", "3.1", None)
    counted = medusa("tail", "moving", "--tentative", "--count", "1", opener=opener(world))
    assert counted.out == shown.out


@pytest.mark.parametrize("words", [("-n", "1"), ("--from", "5m")])
def test_tentative_results_have_no_time_to_begin_at(
    medusa: Caller, world: World, words: tuple[str, str]
) -> None:
    """What is tentative depends on all results before."""
    called = medusa("tail", "moving", "--tentative", *words, opener=opener(world))
    assert called.code == 64


def test_a_stream_without_tentative_results_is_refused(medusa: Caller, world: World) -> None:
    """With a hint."""
    called = medusa("tail", "stopped", "--tentative", opener=opener(world))
    assert called.code == 65
    assert "never tentative" in called.err


def test_an_offset_of_a_stable_result_is_shown() -> None:
    """As in a tail without tentative results."""
    record = KafkaRecord(SPEEDS, 1, Offset(7), Millis(-1), b"a", b"x")
    line = record_line(DecodedRecord(record, "a", "x", "bad"))
    assert line == "-  1@7  a  x  (bad)"
