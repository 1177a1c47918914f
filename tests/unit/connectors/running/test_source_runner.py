from collections.abc import Sequence

import pytest

from brokers.kafka_interface import BEGINNING
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.memory_kafka.writers import MemoryTransactions
from brokers.records import KafkaRecord, NewTopicSpec
from connectors.conformance.sources import NAMES, SCHEMA_ID, TOPIC
from connectors.running.pace import Passed, Rates
from connectors.running.positions import encode
from connectors.running.source_runner import SourceRunner, Target
from connectors.source import Limit, Refused, Row, SplitId
from pipeline.clock import Deadline
from pipeline.errors import FencedError, RetryError
from pipeline.ids import TopicName, TransactionalId
from pipeline.lanes.dead_letters import PREFIX
from pipeline.names import connectors_topic
from schemas.codec import decode
from schemas.wire import Framed, split
from tests.unit.connectors.twins import SCHEMA, MemorySource, TickingClock, refused, row

A, B = SplitId("a"), SplitId("b")


def world(
    kafka: MemoryKafka, *rows: Row | Refused, limit: int = 10, rates: Rates | None = None
) -> SourceRunner:
    """A runner of a source with these records in one split, and one in another."""
    kafka.create_topics((NewTopicSpec(TOPIC, 1, 1),))
    splits: dict[SplitId, Sequence[Row | Refused]] = {A: rows, B: (row(100),)}
    return SourceRunner(
        NAMES,
        MemorySource(splits),
        Target(TOPIC, SCHEMA, SCHEMA_ID, "n"),
        kafka,
        kafka,
        kafka.clock,
        Limit(limit, 1_000_000),
        rates or Rates(),
    )


@pytest.fixture
def kafka() -> MemoryKafka:
    """An empty cluster."""
    return MemoryKafka(TickingClock())


def records(kafka: MemoryKafka, topic: TopicName) -> list[KafkaRecord]:
    """The committed records of a topic."""
    ends = kafka.end_offsets([topic])
    with kafka.reader(1) as reader:
        reader.assign({topic: dict.fromkeys(ends[topic], BEGINNING)})
        return list(reader.read_to(ends))


def numbers(kafka: MemoryKafka) -> list[int]:
    """The numbers in the topic."""
    found = []
    for record in records(kafka, TOPIC):
        framed = split(record.value)
        assert isinstance(framed, Framed)
        number = decode(SCHEMA, SCHEMA, framed.body)["n"]
        assert record.key == str(number).encode()
        found.append(number)
    return found


def test_a_round_takes_from_all_splits(kafka: MemoryKafka) -> None:
    """Up to its limit; the next one goes on, and the last one finds nothing."""
    runner = world(kafka, row(1), row(2), row(3), limit=2)
    runner.start()
    assert runner.step() == Passed(2, 0, 2, more=True)
    assert runner.step() == Passed(2, 0, 4, more=False)
    assert runner.step() == Passed()
    assert numbers(kafka) == [1, 2, 3, 100]


def test_a_later_run_goes_on_where_the_first_one_ended(kafka: MemoryKafka) -> None:
    """By the positions in Kafka, of which it tells its source."""
    first = world(kafka, row(1), row(2), limit=1)
    first.start()
    first.step()
    second = world(kafka, row(1), row(2))
    second.start()
    assert isinstance(second.source, MemorySource)
    assert second.source.acknowledged == [{A: {"next": 1}}]
    second.step()
    assert numbers(kafka) == [1, 2, 100]
    with pytest.raises(FencedError):
        first.step()
    assert numbers(kafka) == [1, 2, 100]


def test_what_is_no_record_becomes_a_dead_letter(kafka: MemoryKafka) -> None:
    """Byte for byte, with the reason, the place and the split, and stops no other record."""
    wrong = Row({"n": "many"}, b"raw", "row 3")
    keyless = Row({"n": None}, b"none", "row 4")
    runner = world(kafka, row(1), refused(2), wrong, keyless)
    runner.start()
    assert runner.step() == Passed(2, 3, 5 + len(b"bad 2rawnone") - 1, more=False)
    assert numbers(kafka) == [1, 100]
    found = records(kafka, NAMES.dead_letters)
    assert [one.value for one in found] == [b"bad 2", b"raw", b"none"]
    headers = [
        {name.removeprefix(PREFIX): (value or b"").decode() for name, value in one.headers}
        for one in found
    ]
    assert [one["reason"] for one in headers] == ["bad", "does-not-fit", "does-not-fit"]
    assert headers[0] == {
        "format": "1",
        "reason": "bad",
        "message": "it is bad",
        "participant": "local",
        "connector": "tried",
        "place": "row 2",
        "split": "a",
    }


class Failing(MemoryTransactions):
    """Does not answer to a commit."""

    def commit(self, deadline: Deadline) -> None:
        """It is not known whether it is committed."""
        super().commit(deadline)
        raise RetryError("no answer")


def test_after_a_commit_without_an_answer_the_stored_positions_count(
    kafka: MemoryKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written twice; without a start nothing is written at all."""
    runner = world(kafka, row(1), row(2), limit=1)
    with monkeypatch.context() as patched:
        patched.setattr(kafka, "transactions", lambda name: Failing(kafka, name))
        runner.start()
        with pytest.raises(RetryError, match="no answer"):
            runner.step()
    with pytest.raises(RetryError, match="has not started"):
        runner.step()
    runner.start()
    runner.step()
    assert numbers(kafka) == [1, 2]


def test_positions_behind_an_open_transaction_are_awaited(kafka: MemoryKafka) -> None:
    """That of another source in the same topic hides them; without them records come twice."""
    runner = world(kafka, row(1), row(2), limit=1)
    runner.start()
    other = kafka.transactions(TransactionalId("other"))
    other.start(Deadline.after(kafka.clock, 1, "starting"))
    other.begin()
    other.send(connectors_topic(NAMES.participant), b"other/a", encode({}), timestamp_ms=0)
    runner.step()
    with pytest.raises(RetryError, match="another source"):
        runner.start()
    other.commit(Deadline.after(kafka.clock, 1, "committing"))
    runner.start()
    runner.step()
    assert numbers(kafka) == [1, 2]


def test_rates_are_kept_by_waiting_after_a_round(kafka: MemoryKafka) -> None:
    """Ten records at five a second take two seconds."""
    runner = world(kafka, *(row(n) for n in range(9)), limit=100, rates=Rates(records=5))
    runner.start()
    runner.step()
    assert kafka.clock.monotonic_s() == pytest.approx(2.0)
