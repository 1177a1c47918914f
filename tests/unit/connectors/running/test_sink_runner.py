import pytest

from brokers.kafka_interface import BEGINNING
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import KafkaRecord, NewTopicSpec
from connectors.conformance.sources import NAMES, SCHEMA_ID, TOPIC
from connectors.running.sink_runner import SinkRunner
from connectors.sink import Batch, Refuse, Removal, Result
from connectors.source import Limit
from pipeline.clock import Deadline
from pipeline.errors import FencedError, RefusedError, RetryError
from pipeline.lanes.dead_letters import PREFIX
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from schemas.codec import encode
from schemas.wire import join
from tests.unit.connectors.twins import SCHEMA, MemorySink, MemoryTarget, TickingClock


@pytest.fixture
def kafka() -> MemoryKafka:
    """A cluster with a topic of two partitions."""
    found = MemoryKafka(TickingClock())
    found.create_topics((NewTopicSpec(TOPIC, 2, 1),))
    return found


def send(kafka: MemoryKafka, *numbers: int) -> None:
    """Write records."""
    for number in numbers:
        value = join(SCHEMA_ID, encode(SCHEMA, {"n": number}))
        kafka.append(TOPIC, str(number).encode(), value)


def runner(kafka: MemoryKafka, sink: MemorySink, limit: int = 100) -> SinkRunner:
    """A runner of a sink."""
    return SinkRunner(
        NAMES,
        sink,
        TOPIC,
        kafka,
        kafka,
        SCHEMA,
        lambda handle: SCHEMA if handle == SCHEMA_ID else None,
        kafka.clock,
        Limit(limit, 1_000_000),
    )


def letters_of(kafka: MemoryKafka) -> list[KafkaRecord]:
    """All dead letters."""
    with kafka.reader(1) as reader:
        ends = kafka.end_offsets([NAMES.dead_letters])
        reader.assign({NAMES.dead_letters: {0: BEGINNING}})
        return list(reader.read_to(ends))


def test_rows_arrive_with_a_marker(kafka: MemoryKafka) -> None:
    """In batches; nothing new is no batch."""
    send(kafka, *range(10))
    target = MemoryTarget()
    run = runner(kafka, MemorySink(target), limit=4)
    run.start()
    assert [run.step().records for _ in range(4)] == [4, 4, 2, 0]
    assert sorted(str(row["n"]) for row in target.rows) == [str(n) for n in range(10)]
    assert target.marker is not None
    assert target.marker.number == 3
    assert sum(target.marker.positions.values()) == 10


def test_a_later_run_goes_on_behind_the_marker(kafka: MemoryKafka) -> None:
    """And ends the first one."""
    target = MemoryTarget()
    first = runner(kafka, MemorySink(target))
    send(kafka, 1, 2)
    first.start()
    first.step()
    send(kafka, 3, 4)
    second = runner(kafka, MemorySink(target))
    second.start()
    with pytest.raises(FencedError):
        first.step()
    second.step()
    assert sorted(str(row["n"]) for row in target.rows) == ["1", "2", "3", "4"]


class Silent(MemorySink):
    """Stores a batch, and does not answer."""

    def write(self, batch: Batch, refuse: Refuse, deadline: Deadline) -> None:
        """It is not known whether it is stored."""
        super().write(batch, refuse, deadline)
        raise RetryError("no answer")


def test_after_a_write_without_an_answer_the_marker_counts(kafka: MemoryKafka) -> None:
    """Nothing is stored twice."""
    target = MemoryTarget()
    send(kafka, 1)
    run = runner(kafka, Silent(target))
    run.start()
    with pytest.raises(RetryError, match="no answer"):
        run.step()
    with pytest.raises(RetryError, match="has not started"):
        run.step()
    run.start()
    assert run.step().records == 0
    assert [row["n"] for row in target.rows] == [1]


def test_what_cannot_be_decoded_becomes_a_dead_letter(kafka: MemoryKafka) -> None:
    """Byte for byte, and stops no other record; the marker passes it."""
    kafka.append(TOPIC, b"key", b"no Avro", headers=(("kept", b"1"),))
    send(kafka, 1)
    target = MemoryTarget()
    run = runner(kafka, MemorySink(target))
    run.start()
    assert run.step().records == 1
    assert run.step().records == 0
    (letter,) = letters_of(kafka)
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["kept"]) == (b"key", b"no Avro", b"1")
    assert headers[f"{PREFIX}reason"] == b"not-decoded"
    assert b"partition" in (headers[f"{PREFIX}place"] or b"")


def test_a_topic_that_was_made_again_is_refused(kafka: MemoryKafka) -> None:
    """Its offsets mean something else."""
    target = MemoryTarget()
    send(kafka, 1)
    run = runner(kafka, MemorySink(target))
    run.start()
    run.step()
    kafka.delete_topics([TOPIC])
    with pytest.raises(RefusedError, match="does not exist"):
        run.start()
    kafka.create_topics((NewTopicSpec(TOPIC, 2, 1),))
    with pytest.raises(RefusedError, match="another topic of this name"):
        run.start()


def test_results_have_their_ids_and_removals_are_handed_over(kafka: MemoryKafka) -> None:
    """A record without an id has its place as one; only a correction without a value removes."""
    value = join(SCHEMA_ID, encode(SCHEMA, {"n": 1}))
    kafka.append(TOPIC, b"a", value)
    kafka.append(TOPIC, b"a", value, headers=((RESULT_ID, b"x"),))
    kafka.append(TOPIC, b"a", value, headers=((RESULT_ID, b"x"), (CORRECTION, b"1")))
    kafka.append(TOPIC, b"a", None, headers=((RESULT_ID, b"x"), (CORRECTION, b"2")))
    kafka.append(TOPIC, b"a", None, headers=((RESULT_ID, b"x"),))
    sink = MemorySink(MemoryTarget())
    run = runner(kafka, sink)
    run.start()
    passed = run.step()
    assert (passed.records, passed.refused) == (4, 1)
    first, *others = sink.target.changes
    assert first.id == f"{TOPIC}/{first.partition}/0"
    assert [one.id for one in others] == ["x"] * 3
    assert [isinstance(one, Result) and one.corrects for one in others] == [False, True, False]
    assert isinstance(others[2], Removal)


def test_a_row_that_the_target_refuses_becomes_a_dead_letter(kafka: MemoryKafka) -> None:
    """Its record byte for byte, with the reason of the sink; the others are stored."""
    send(kafka, 1, 2, 3)
    target = MemoryTarget(refuses={"n": 2})
    run = runner(kafka, MemorySink(target))
    run.start()
    passed = run.step()
    assert (passed.records, passed.refused) == (2, 1)
    assert sorted(str(row["n"]) for row in target.rows) == ["1", "3"]
    (letter,) = letters_of(kafka)
    assert letter.value == join(SCHEMA_ID, encode(SCHEMA, {"n": 2}))
    assert dict(letter.headers)[f"{PREFIX}reason"] == b"unfit"
