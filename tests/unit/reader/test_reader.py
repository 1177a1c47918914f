import pytest

from brokers.kafka_interface import NoSuchTopicError, NotNowError, OffsetGoneError
from brokers.records import NewTopicSpec
from pipeline.clock import Deadline
from pipeline.errors import RefusedError
from pipeline.ids import Offset, TopicName, TransactionalId
from pipeline.names import tentative_topic
from pipeline.reader.reader import DESCRIBE_S, Connected, Reader
from pipeline.reader.results import Start
from pipeline.tentative.view import TooManyTentativeError
from tests.unit.kafka import Leaderless, create, grow
from tests.unit.reader.output import TOPIC, Output, Program, open_on, read
from tests.unit.tentative.made import mark, result, undo


def test_tentative_results_are_confirmed_replaced_and_undone() -> None:
    """Tentative results are confirmed replaced and undone."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    for name in "abc":
        output.tentative(result(name, 10))
    read(reader)
    assert program.values == {b"a": "v", b"b": "v", b"c": "v"}
    output.stable("a", 10)
    output.stable("b", 10, "other", partition=1)
    output.promise(10)
    output.tentative(mark(10))
    read(reader)
    assert program.values == {b"a": "v", b"b": "other"}
    assert sorted(program.told[3:]) == [
        "done 1.1",
        "stable a True",
        "stable b False",
        "undo c 1.1 None",
    ]
    assert reader.open_results == 0


def test_an_undo_record_undoes() -> None:
    """An undo record undoes."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    output.tentative(result("a", 10))
    output.tentative(undo("a", 10))
    read(reader)
    assert program.told == ["tentative a 1.1", "undo a 1.1 None"]


def test_corrections_replace_and_delete() -> None:
    """Corrections replace and delete."""
    output, program = Output(tentative=False), Program()
    output.stable("a", 10)
    output.stable("a", 10, "better", correction=1)
    output.stable("a", 10, None, correction=2)
    read(open_on(output, program))
    assert program.told == ["stable a None", "stable a None corrects 1", "undo a None 2"]
    assert program.values == {}


def test_records_of_others_are_ignored() -> None:
    """Records of others are ignored."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    output.kafka.append(TOPIC, b"a", b"v", partition=0)
    output.kafka.append(tentative_topic(TOPIC), b"a", b"v", partition=0)
    output.activity()
    output.promise(50, topic_id="another")
    output.tentative(result("b", 10))
    read(reader)
    assert program.told == ["tentative b 1.1"]


def test_a_boundary_counts_when_its_positions_were_read() -> None:
    """The results before it are in a transaction that ends later."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    output.tentative(result("a", 10))
    transaction = output.kafka.transactions(TransactionalId("lane"))
    transaction.start(Deadline.after(output.clock, 1.0, "a test"))
    transaction.begin()
    transaction.send(TOPIC, None, b"x", timestamp_ms=1, partition=0)
    output.stable("a", 10)
    output.promise(10)
    read(reader)
    assert program.told == ["tentative a 1.1"]
    transaction.commit(Deadline.after(output.clock, 1.0, "a test"))
    read(reader)
    assert program.told == ["tentative a 1.1", "stable a True"]


def test_the_boundaries_of_the_last_writer_count() -> None:
    """Another fragment has taken the topic over; the first one promises nothing any more."""
    output, program = Output(), Program()
    output.promise(10)
    output.promise(20, writer="acme.tolls.faster")
    reader = open_on(output, program)
    read(reader)
    assert reader.position.passed_ms == 20


def test_at_the_start_tentative_results_that_are_stable_are_not_reported() -> None:
    """At the start tentative results that are stable are not reported."""
    output, program = Output(), Program()
    for name in "abc":
        output.tentative(result(name, 10))
    output.tentative(result("d", 20))
    output.stable("a", 10)
    output.promise(10)
    read(open_on(output, program))
    assert program.told == ["stable a None", "tentative d 1.1"]


def test_a_reader_that_begins_now_reports_what_still_counts() -> None:
    """A reader that begins now reports what still counts."""
    output, program = Output(), Program()
    for name, time in (("a", 10), ("b", 20), ("c", 20)):
        output.tentative(result(name, time))
    output.stable("a", 10)
    output.promise(10)
    output.stable("b", 20)
    reader = open_on(output, program, Start.NOW)
    read(reader)
    assert program.told == ["tentative c 1.1"]
    output.stable("c", 20)
    read(reader)
    assert program.told == ["tentative c 1.1", "stable c True"]


def test_a_reader_goes_on_at_its_position() -> None:
    """It knows the stable results before it, and reports all tentative ones that count."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    output.stable("a", 10)
    output.promise(10)
    output.stable("b", 20)
    read(reader)
    for name in "bcd":
        output.tentative(result(name, 20))
    read(reader)
    position = reader.position
    reader.close()
    assert position.passed_ms == 10
    program.restarted()
    output.stable("c", 20)
    read(open_on(output, program, position))
    assert program.told == ["stable c None", "tentative d 1.1"]


def test_an_exception_of_the_program_leaves_the_position_before_the_results() -> None:
    """An exception of the program leaves the position before the results."""
    output, program = Output(), Program(fails=True)
    reader = open_on(output, program)
    output.stable("a", 10)
    before = reader.position
    with pytest.raises(OSError, match="disk is full"):
        read(reader)
    assert reader.position == before
    program.fails = False
    read(open_on(output, program, before))
    assert program.told == ["stable a None"]


def test_partitions_that_are_added_are_read() -> None:
    """Partitions that are added are read."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    grow(output.kafka, TOPIC, 3)
    grow(output.kafka, tentative_topic(TOPIC), 3)
    output.tentative(result("a", 10, partition=2))
    output.stable("b", 10, partition=2)
    output.promise(5)
    output.clock.sleep(DESCRIBE_S)
    read(reader)
    assert sorted(program.told) == ["stable b None", "tentative a 1.1"]
    assert reader.position.passed_ms == 5
    assert set(reader.position.offsets) == {0, 1, 2}


def test_a_position_without_an_added_partition_begins_with_it() -> None:
    """A position without an added partition begins with it."""
    output, program = Output(), Program()
    position = open_on(output, program).position
    grow(output.kafka, TOPIC, 3)
    output.stable("b", 10, partition=2)
    read(open_on(output, program, position))
    assert program.told == ["stable b None"]


def test_a_tentative_topic_that_is_added_is_read() -> None:
    """A tentative topic that is added is read."""
    output, program = Output(tentative=False), Program()
    reader = open_on(output, program)
    read(reader)
    create(output.kafka, tentative_topic(TOPIC), partitions=2)
    output.tentative(result("a", 10))
    output.clock.sleep(DESCRIBE_S)
    read(reader)
    assert program.told == ["tentative a 1.1"]


def test_a_topic_that_was_made_again_is_refused() -> None:
    """A topic that was made again is refused."""
    output, program = Output(), Program()
    reader = open_on(output, program)
    read(reader)
    position = reader.position
    output.kafka.delete_topics([TOPIC])
    output.kafka.create_topics((NewTopicSpec(TOPIC, 2, 1),))
    with pytest.raises(RefusedError, match="deleted and made again since"):
        open_on(output, program, position)
    output.clock.sleep(DESCRIBE_S)
    with pytest.raises(RefusedError, match="deleted and made again"):
        reader.poll()


def test_results_that_retention_has_removed_are_an_error() -> None:
    """Results that retention has removed are an error."""
    output, program = Output(), Program()
    position = open_on(output, program).position
    output.stable("a", 10)
    output.stable("b", 10)
    output.kafka.delete_records(TOPIC, {0: Offset(1)})
    with pytest.raises(OffsetGoneError), open_on(output, program, position) as reader:
        read(reader)


def test_there_has_to_be_a_topic_with_leaders() -> None:
    """There has to be a topic with leaders."""
    kafka = Leaderless()
    connected = Connected(kafka, kafka.reader(0.0), kafka.clock)
    with pytest.raises(NoSuchTopicError):
        Reader(connected, TopicName("speeds"), Program())
    create(kafka, "speeds")
    kafka.leaderless = ("speeds",)
    for start in Start:
        with pytest.raises(NotNowError):
            Reader(connected, TopicName("speeds"), Program(), start)


def test_more_tentative_results_than_it_keeps_are_an_error() -> None:
    """More tentative results than it keeps are an error."""
    output = Output()
    for name in "abc":
        output.tentative(result(name, 10))
    with pytest.raises(TooManyTentativeError):
        read(open_on(output, Program(), most_open=2))
