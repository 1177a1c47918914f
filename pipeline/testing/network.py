"""A network under test: all of its lanes, over topics in memory."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from brokers.kafka_interface import Isolation
from brokers.memory_kafka.cluster import MemoryKafka
from brokers.records import KafkaRecord, NewTopicSpec
from pipeline.boundaries.ends import ENDS_FRESH_MS, Ends
from pipeline.dead_letters.letter import Letter, read
from pipeline.durations import UNITS_MS
from pipeline.errors import SchemaError
from pipeline.ids import (
    Millis,
    Offset,
    SchemaHandle,
    SteadyMillis,
    StreamName,
    TopicId,
    TopicName,
)
from pipeline.names import boundaries_topic
from pipeline.planner.plan import Fragment
from pipeline.spark.query.lower import LoweringInputs, lower
from pipeline.spark.query.lowered import WriterSchema
from pipeline.spark.run.topic_identity import topics_of
from pipeline.testing.check import Checked
from pipeline.testing.compare import Actual
from pipeline.testing.dead_letters import comparable
from pipeline.testing.lane import Lane, StartQuery, Stopped, sources_of
from pipeline.testing.steps import Sent
from schemas.avro import AvroSchema, parse
from schemas.codec import decode, to_json
from schemas.json_value import JsonObject, object_of
from schemas.logical import Native
from schemas.wire import Framed, split

_FIRST_STEP_MS: Final = 10 * UNITS_MS["m"]
_STEPS: Final = 9
_FASTER: Final = 10
"""`settle` advances by ten minutes, then ten times as far each time: nine steps are millennia."""


class NetworkUnderTest:
    """Runs a network as far as its records and the test's advances allow. Has to be closed."""

    def __init__(self, test: Checked, start: StartQuery) -> None:
        """Start a lane for each fragment.

        Args:
            test: the checked test with its network and records.
            start: starts a query.
        """
        self._streams = test.streams
        self._schemas: dict[SchemaHandle, str] = {
            test.schemas.id_of(text): text for text in _texts(test)
        }
        self._kafka = MemoryKafka(Stopped())
        self._kafka.create_topics(tuple(_topics(test)))
        self._now_ms = SteadyMillis(0)
        self._advanced_ms: Millis | None = None
        self._taken: dict[TopicName, Offset] = {}
        self._lanes: list[Lane] = []
        try:
            for fragment in test.streams.plan.fragments:
                lowered = lower(fragment, _surroundings(fragment, test, self._kafka))
                self._lanes.append(Lane(fragment, lowered, self._kafka, start))
        except BaseException:
            self.close()
            raise

    def send(self, stream: StreamName, records: Sequence[Sent]) -> None:
        """Send records, and compute the results.

        Raises:
            MedusaError: a lane failed.
        """
        topic = self._streams.topics[stream]
        for sent in records:
            self._kafka.append(
                topic,
                sent.key,
                sent.value,
                timestamp_ms=sent.timestamp_ms,
                partition=sent.partition,
            )
        self._run()

    def advance(self, to_ms: Millis) -> None:
        """Advance event time, as if all partitions had a record that much newer."""
        self._advanced_ms = to_ms if self._advanced_ms is None else max(to_ms, self._advanced_ms)
        self._run()

    def wait(self, ms: int) -> None:
        """Let time pass without records."""
        until_ms = self._now_ms + ms
        while self._now_ms < until_ms:  # a larger step would interrupt the observation of idleness
            self._now_ms = SteadyMillis(min(until_ms, self._now_ms + ENDS_FRESH_MS))
            self._read_ends()
        self._run()

    def settle(self) -> None:
        """Advance event time until no lane has state."""
        newest = [lane.newest_ms for lane in self._lanes]
        seen = [ms for ms in (*newest, self._advanced_ms) if ms is not None]
        step_ms = _FIRST_STEP_MS
        for _ in range(_STEPS if seen else 0):
            self.advance(Millis(max(seen) + step_ms))
            if all(lane.rests for lane in self._lanes):
                return
            step_ms *= _FASTER

    def take(self, stream: StreamName) -> tuple[Actual, ...]:
        """The records of a stream since the last call, in the order of its topic."""
        schema = self._streams.derived[stream]
        return tuple(
            Actual(value, object_of(to_json(schema, value)))
            for record in self._new(self._streams.topics[stream])
            for value in [self._value(record, schema)]
        )

    def take_dead_letters(self) -> tuple[Actual, ...]:
        """The dead letters since the last call."""
        return comparable(
            (letter, *self._original(letter))
            for lane in self._lanes
            for letter in map(read, self._new(lane.fragment.names.dead_letters))
        )

    def close(self) -> None:
        """End all queries."""
        for lane in self._lanes:
            lane.close()
        self._lanes = []

    def _run(self) -> None:
        """Lanes are in topological order, so each has all its input when it runs."""
        self._read_ends()
        for lane in self._lanes:
            lane.run(self._advanced_ms)
            writer, topic = lane.fragment.names.writer, lane.fragment.output.topic
            topic_id = TopicId(self._kafka.topics[topic].topic_id)
            for reader in self._lanes:
                reader.set_activity(writer, topic_id, idle=lane.is_idle)
            self._read_ends()

    def _read_ends(self) -> None:
        topics = {i.topic for f in self._streams.plan.fragments for i in f.inputs}
        ends = Ends(self._now_ms, self._kafka.end_offsets(topics))
        for lane in self._lanes:
            lane.set_ends(ends)

    def _new(self, topic: TopicName) -> Iterator[KafkaRecord]:
        since = self._taken.get(topic, Offset(0))
        found, self._taken[topic] = self._kafka.read(topic, 0, since, Isolation.COMMITTED)
        yield from found

    def _value(self, record: KafkaRecord, schema: AvroSchema) -> dict[str, Native]:
        framed = split(record.value)
        assert isinstance(framed, Framed)  # noqa: S101 - a lane wrote it
        value: dict[str, Native] = decode(schema, schema, framed.body)
        return value

    def _original(self, letter: Letter) -> tuple[Mapping[str, Native] | None, JsonObject | None]:
        """The record of a dead letter, decoded and as JSON; None if it is not decodable."""
        framed = split(letter.record.value)
        text = self._schemas.get(framed.schema) if isinstance(framed, Framed) else None
        if text is None or not isinstance(framed, Framed):
            return None, None
        schema = parse(text)
        try:
            value = decode(schema, schema, framed.body)
        except SchemaError:
            return None, None
        return value, object_of(to_json(schema, value))


def _texts(test: Checked) -> Iterator[str]:
    """All schemas of values."""
    for name, schema in test.streams.schemas.items():
        yield from (schema.text, *test.writers.get(name, ()))


def _topics(test: Checked) -> Iterator[NewTopicSpec]:
    """All topics; those that lanes write have one partition."""
    for fragment in test.streams.plan.fragments:
        for topic in (*topics_of(fragment), boundaries_topic(fragment.output.topic)):
            yield NewTopicSpec(topic, test.partitions.get(topic, 1), 1)


def _surroundings(fragment: Fragment, test: Checked, kafka: MemoryKafka) -> LoweringInputs:
    """The facts that a registry and a broker would return."""
    ids, output = test.schemas, fragment.output
    topics = kafka.describe(topics_of(fragment))
    topic_ids = {topic: TopicId(one.topic_id) for topic, one in topics.items()}
    return LoweringInputs(
        sources=sources_of(fragment, topic_ids),
        writers={
            i.name: tuple(
                WriterSchema(ids.id_of(text), text)
                for text in dict.fromkeys((_own(i.name, test), *test.writers.get(i.name, ())))
            )
            for i in fragment.inputs
        },
        missing=(),
        partitions={topic: one.partitions for topic, one in topics.items()},
        value_id=ids.id_of(_own(output.name, test)),
        key_id=None if output.key_schema_json is None else ids.id_of(output.key_schema_json),
    )


def _own(stream: StreamName, test: Checked) -> str:
    return test.streams.schemas[stream].text
