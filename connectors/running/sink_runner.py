"""Runs a sink: reads a topic from the marker of the target on, and hands over batches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from brokers.kafka_interface import KafkaCluster, RecordReader, TopicAdmin, complete
from brokers.records import KafkaRecord
from connectors.running import dead_letters
from connectors.running.pace import Passed, Rates
from connectors.sink import Batch, Change, Marker, RefusedChange, Removal, Result, Sink
from connectors.source import Limit
from pipeline.clock import Clock, Deadline
from pipeline.errors import RefusedError, RetryError, SchemaError
from pipeline.ids import Offset, SchemaHandle, TopicId, TopicName
from pipeline.lanes.result_headers import CORRECTION, RESULT_ID
from pipeline.names import ConnectorNames
from schemas.avro import AvroSchema
from schemas.codec import decode, to_json
from schemas.wire import Part, WireFault, identified, words

READ_S = 20.0
WRITE_S = 60.0
LETTERS_S = 30.0
POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class _Letter:
    """A record that becomes a dead letter, with the reason in a word and in a sentence."""

    record: KafkaRecord
    reason: str
    message: str


@dataclass(slots=True)
class SinkRunner:
    """One run of a sink; a later run ends this one, as far as the target can.

    Args:
        names: of the connector.
        sink: fulfils the contract of `connectors/sink.py`.
        topic: is read from its beginning, or from the marker of the target on.
        kafka: opens readers and writers.
        topics: describes the topic, and creates that of dead letters.
        schema: of the rows; records that were written with another one are read by it.
        schema_of: the schema of a handle; None: the registry has none.
        clock: of deadlines and pauses.
        limit: of a batch.
        every_s: a batch is written so long after its first record, however small it is.
        rates: bounds of the speed.
    """

    names: ConnectorNames
    sink: Sink
    topic: TopicName
    kafka: KafkaCluster
    topics: TopicAdmin
    schema: AvroSchema
    schema_of: Callable[[SchemaHandle], AvroSchema | None]
    clock: Clock
    limit: Limit
    every_s: float = 1.0
    rates: Rates = field(default_factory=Rates)
    _reader: RecordReader | None = None
    _marker: Marker | None = None

    def start(self) -> None:
        """Open the target, and go on behind its marker.

        Raises:
            RefusedError: the topic does not exist, or is another one than that of the marker.
            RetryError, UnavailableError: Kafka or the target did not answer in time.
        """
        found = self.topics.describe([self.topic]).get(self.topic)
        if found is None:
            raise RefusedError("the topic does not exist", place=f"topic {self.topic}")
        topic_id = TopicId(found.topic_id)
        deadline = Deadline.after(self.clock, WRITE_S, "opening the target")
        marker = self.sink.open(deadline) or Marker(0, topic_id, {})
        if marker.topic_id != topic_id:
            raise RefusedError(
                "the target has rows of another topic of this name",
                place=f"topic {self.topic}",
                hint="the topic was deleted and made again: use another target, or an empty one.",
            )
        self._close_reader()
        reader = self.kafka.reader(READ_S)
        oldest = complete(self.topics.start_offsets([self.topic]), [self.topic])[self.topic]
        reader.assign({self.topic: {**oldest, **marker.positions}})
        self._reader, self._marker = reader, marker

    def step(self) -> Passed:
        """Read and store one batch.

        Raises:
            FencedError: a newer run has opened the target.
            RetryError, UnavailableError: it is not known what is stored; call `start`.
        """
        reader, before = self._reader, self._marker
        if reader is None or before is None:
            raise RetryError("the run has not started", place=f"connector {self.names.connector}")
        began_s = self.clock.monotonic_s()
        records, size = self._read(reader)
        if not records:
            return Passed(more=self._is_behind(reader))
        by_place = {(one.partition, one.offset): one for one in records}
        decoded = [(record, self._decoded(record)) for record in records]
        undecoded = [
            _Letter(record, "not-decoded", why) for record, why in decoded if isinstance(why, str)
        ]
        self._keep(undecoded)
        changes = tuple(one for _, one in decoded if not isinstance(one, str))
        ends = {record.partition: Offset(record.offset + 1) for record in records}
        marker = Marker(before.number + 1, before.topic_id, {**before.positions, **ends})
        self._marker = None  # until it is known what is stored
        refused = self._store(Batch(changes, marker), by_place)
        self._marker = marker
        pause_s = self.rates.pause_s(len(records), size, self.clock.monotonic_s() - began_s)
        if pause_s > 0:
            self.clock.sleep(pause_s)
        return Passed(len(changes) - refused, len(undecoded) + refused, size)

    def close(self) -> None:
        """Close the reader and the sink."""
        self._close_reader()
        self.sink.close()

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _is_behind(self, reader: RecordReader) -> bool:
        """Whether the topic has records that were not read: a first answer may take a while."""
        ends = complete(self.topics.end_offsets([self.topic]), [self.topic])[self.topic]
        read = reader.positions[self.topic]
        return any(read[partition] < end for partition, end in ends.items() if partition in read)

    def _read(self, reader: RecordReader) -> tuple[list[KafkaRecord], int]:
        """The records of a batch, and their size in bytes."""
        records: list[KafkaRecord] = []
        size = 0
        deadline = Deadline.after(self.clock, self.every_s, "reading a batch")
        while len(records) < self.limit.records and size < self.limit.size_bytes:
            found = reader.poll(
                min(POLL_S, deadline.remaining_s()), self.limit.records - len(records)
            )
            records.extend(found)
            size += sum(len(one.value or b"") for one in found)
            if deadline.passed or (not found and not records):
                break
        return records, size

    def _store(self, batch: Batch, by_place: Mapping[tuple[int, Offset], KafkaRecord]) -> int:
        """Store a batch; returns how many of its changes became dead letters."""
        refused = 0

        def refuse(changes: Sequence[RefusedChange]) -> None:
            nonlocal refused
            refused += len(changes)
            places = [(one.change.partition, one.change.offset) for one in changes]
            self._keep(
                [
                    _Letter(by_place[place], one.reason, one.message)
                    for place, one in zip(places, changes, strict=True)
                ]
            )

        self.sink.write(batch, refuse, Deadline.after(self.clock, WRITE_S, "writing"))
        return refused

    def _decoded(self, record: KafkaRecord) -> Change | str:
        """What a record means, or why it means nothing."""
        headers = dict(record.headers)
        named = headers.get(RESULT_ID)
        corrects = CORRECTION in headers
        id_ = f"{record.topic}/{record.partition}/{record.offset}"
        if named:
            id_ = named.decode(errors="backslashreplace")
        if record.value is None and corrects and named:
            return Removal(record.partition, record.offset, id_)
        framed = identified(record.value, record.headers, Part.VALUE)
        if isinstance(framed, WireFault):
            return framed.value
        writer = self.schema_of(framed.schema)
        if writer is None:
            return f"the registry has no schema with {words(framed.schema)}"
        try:
            found = to_json(self.schema, decode(writer, self.schema, framed.body))
        except SchemaError as error:
            return error.message
        if not isinstance(found, dict):
            return "the value is no record"
        return Result(found, record.partition, record.offset, id_, corrects)

    def _keep(self, letters: Sequence[_Letter]) -> None:
        """Write dead letters, and wait for them: before the batch, so that none is lost."""
        if not letters:
            return
        self.topics.create_topics((dead_letters.topic_spec(self.names),))
        producer = self.kafka.producer(LETTERS_S)
        try:
            for one in letters:
                record = one.record
                place = (
                    f"topic {record.topic}, partition {record.partition}, offset {record.offset}"
                )
                about = dead_letters.headers(
                    self.names, reason=one.reason, message=one.message, place=place
                )
                both = (*dead_letters.original(record), *about)
                producer.send(self.names.dead_letters, record.key, record.value, headers=both)
            producer.flush(LETTERS_S)
        finally:
            producer.close()
