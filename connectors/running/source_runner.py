"""Runs a source: records, dead letters and positions of a round in one Kafka transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from brokers.kafka_interface import KafkaCluster, TopicAdmin, TransactionWriter
from connectors.running import dead_letters, positions
from connectors.running.pace import Passed, Rates
from connectors.source import Limit, Position, Refused, Row, Source, SplitId
from pipeline.clock import Clock, Deadline
from pipeline.errors import RetryError, SchemaError, UnavailableError
from pipeline.ids import SchemaId, TopicName
from pipeline.names import ConnectorNames, connectors_topic
from schemas.avro import AvroSchema
from schemas.codec import encode, from_json
from schemas.wire import join

TRANSACTION_S = 60.0
READ_S = 20.0


@dataclass(frozen=True, slots=True)
class Target:
    """Where the records of a source go.

    Args:
        topic: it exists.
        schema: of the values.
        schema_id: its id in the registry.
        key: the field whose text is the key of a record; None: none.
    """

    topic: TopicName
    schema: AvroSchema
    schema_id: SchemaId
    key: str | None = None


@dataclass(slots=True)
class SourceRunner:
    """One run of a source; a later run with the same names ends this one.

    After a failed transaction it forgets what it knew, and goes on from the stored positions.

    Args:
        names: of the connector.
        source: fulfils the contract of `connectors/source.py`.
        target: of the records.
        kafka: opens readers and writers.
        topics: creates the topics of positions and dead letters.
        clock: of deadlines, timestamps and pauses.
        limit: of a round.
        rates: bounds of the speed.
    """

    names: ConnectorNames
    source: Source
    target: Target
    kafka: KafkaCluster
    topics: TopicAdmin
    clock: Clock
    limit: Limit
    rates: Rates = field(default_factory=Rates)
    _writer: TransactionWriter | None = None
    _positions: dict[SplitId, Position] = field(default_factory=dict)

    def start(self) -> None:
        """End every older run, and read the positions.

        Raises:
            RetryError, UnavailableError: Kafka did not answer in time.
        """
        participant = self.names.participant
        letters = dead_letters.topic_spec(self.names)
        self.topics.create_topics((positions.topic_spec(participant), letters))
        self._close_writer()
        writer = self.kafka.transactions(self.names.transactional_id)
        # Before the positions are read: an older run can store none any more.
        writer.start(Deadline.after(self.clock, TRANSACTION_S, "starting the transactions"))
        self._writer = writer
        self._positions = self._stored()
        self.source.stored(dict(self._positions))

    def step(self) -> Passed:
        """Read and write one round; then wait as the rates say.

        Raises:
            FencedError: a newer run has begun.
            SourceChangedError: the source does not have what it had.
            RetryError, UnavailableError: nothing was written as far as anybody knows; call `start`.
        """
        began_s = self.clock.monotonic_s()
        records: list[tuple[SplitId, Row | Refused]] = []
        moved: dict[SplitId, Position] = {}
        size = 0
        more = False
        for split in self.source.splits(dict(self._positions)):
            left = Limit(self.limit.records - len(records), self.limit.size_bytes - size)
            if left.records <= 0 or left.size_bytes <= 0:
                more = True
                break
            chunk = self.source.read(split, self._positions.get(split), left)
            records.extend((split, one) for one in chunk.records)
            size += sum(len(one.raw) for one in chunk.records)
            more = more or chunk.more
            if chunk.position != self._positions.get(split):
                moved[split] = chunk.position
        if not moved:
            return Passed(more=more)
        refused = self._write(records, moved)
        self._positions.update(moved)
        self.source.stored(moved)
        took_s = self.clock.monotonic_s() - began_s
        pause_s = self.rates.pause_s(len(records), size, took_s)
        if pause_s > 0:
            self.clock.sleep(pause_s)
        return Passed(len(records) - refused, refused, size, more)

    def close(self) -> None:
        """Close the connection of the writer, and the source."""
        self._close_writer()
        self.source.close()

    def _close_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _stored(self) -> dict[SplitId, Position]:
        topic = connectors_topic(self.names.participant)
        # An open transaction of another source hides what was committed after it began.
        if not self.topics.await_decided(topic):
            raise RetryError(
                "a transaction of another source is open, which may hide positions",
                place=f"topic {topic}",
            )
        with self.kafka.reader(READ_S) as reader:
            start, end = reader.bounds(topic, 0)
            reader.assign({topic: {0: start}})
            return positions.newest(reader.read_to({topic: {0: end}}), self.names.connector)

    def _write(
        self, records: list[tuple[SplitId, Row | Refused]], moved: Mapping[SplitId, Position]
    ) -> int:
        """Write a round in one transaction; returns how many records were refused."""
        writer = self._writer
        if writer is None:
            raise RetryError("the run has not started", place=f"connector {self.names.connector}")
        deadline = Deadline.after(self.clock, TRANSACTION_S, "writing a round")
        now_ms = self.clock.now_ms()
        writer.begin()
        try:
            refused = sum(self._send(writer, split, one, now_ms) for split, one in records)
            for split, position in moved.items():
                key = positions.key_of(self.names.connector, split)
                writer.send(
                    connectors_topic(self.names.participant),
                    key,
                    positions.encode(position),
                    timestamp_ms=now_ms,
                    partition=0,
                )
            writer.commit(deadline)
        except (RetryError, UnavailableError):
            # Whether it was committed is not known: the next start reads what is stored.
            self._close_writer()
            raise
        return refused

    def _send(
        self, writer: TransactionWriter, split: SplitId, one: Row | Refused, now_ms: int
    ) -> int:
        """Add a record, or its dead letter, to the transaction; returns 1 for the latter."""
        encoded = self._encoded(one)
        if isinstance(encoded, Refused):
            about = dead_letters.headers(
                self.names,
                reason=encoded.reason,
                message=encoded.message,
                place=encoded.place,
                split=split,
            )
            letters = self.names.dead_letters
            writer.send(letters, None, encoded.raw, timestamp_ms=now_ms, headers=about, partition=0)
            return 1
        key, value = encoded
        writer.send(self.target.topic, key, value, timestamp_ms=now_ms)
        return 0

    def _encoded(self, one: Row | Refused) -> tuple[bytes | None, bytes] | Refused:
        if isinstance(one, Refused):
            return one
        try:
            body = encode(self.target.schema, from_json(self.target.schema, dict(one.fields)))
        except SchemaError as error:
            where = f"{error.place}: " if error.place else ""
            return Refused(one.raw, one.place, "does-not-fit", f"{where}{error.message}")
        name = self.target.key
        if name is None:
            return None, join(self.target.schema_id, body)
        found = one.fields.get(name)
        if found is None:
            return Refused(one.raw, one.place, "no-key", f"the field {name} is missing or null")
        return str(found).encode(), join(self.target.schema_id, body)
