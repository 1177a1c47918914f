"""Producer of a case's records: survives broker faults, and stores each record's position."""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random

from confluent_kafka import KafkaError, Message, Producer

from pipeline.ids import SchemaId, StreamName, TopicName
from schemas import avro, codec, wire
from schemas.avro import AvroSchema
from tests.faults.case import AvroSchema as Schema
from tests.faults.case import Case, Fed
from tests.faults.history import Fate, Place, Sent, Value

DELIVERED_WITHIN_S = 300.0
"""Delivery timeout, longer than any broker outage; an undelivered record fails the run."""
TICK_S = 0.02


@dataclass(frozen=True, slots=True)
class Version:
    """A registered schema."""

    schema: AvroSchema
    schema_id: SchemaId
    fields: frozenset[str]

    def encode(self, fields: Mapping[str, Value]) -> bytes:
        """Encode the fields that this version has."""
        known = {name: value for name, value in fields.items() if name in self.fields}
        return wire.join(self.schema_id, codec.encode(self.schema, known))


@dataclass(frozen=True, slots=True)
class Encoder:
    """Encoder of one stream's values, some of them by an older schema."""

    topic: TopicName
    schema: Version
    older: Version

    def value(self, fed: Fed) -> bytes | None:
        """The bytes to send."""
        encoded = (self.older if fed.older else self.schema).encode(fed.fields)
        return encoded if fed.spoil is None else fed.spoil(encoded)


Register = Callable[[str, str], SchemaId]
"""(subject, schema text) → the registered id."""


def encoders(case: Case, network: str, register: Register) -> Mapping[str, Encoder]:
    """Register the schemas of a case's streams; returns the encoders."""

    def registered(topic: TopicName, schema: Schema) -> Version:
        text = json.dumps(schema)
        fields = frozenset(field["name"] for field in schema["fields"])
        return Version(avro.parse(text), register(f"{topic}-value", text), fields)

    found = {}
    for stream in case.streams:
        topic = TopicName(case.topic(network, stream.name))
        older = registered(topic, stream.older or stream.schema)
        found[stream.name] = Encoder(topic, registered(topic, stream.schema), older)
    return found


class Feeder:
    """Sends at a steady rate on its own thread until `finish`.

    Args:
        bootstrap: the brokers.
        case: what is sent.
        encode: for each stream.
        random: random generator.
        start_ms: the first event time.
    """

    def __init__(
        self,
        bootstrap: str,
        case: Case,
        encode: Mapping[str, Encoder],
        random: Random,
        start_ms: int,
    ) -> None:
        self._case = case
        self._encode = encode
        self._records = case.feed(random, start_ms)
        self._sent: list[Sent] = []
        self._largest_ms = start_ms
        self._failed: str | None = None
        self._stop = threading.Event()
        self._held = threading.Event()
        self._keeps: int | None = None
        self._kept: list[Fed] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": int(DELIVERED_WITHIN_S * 1_000),
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._thread = threading.Thread(target=self._run, name=f"feed {case.name}", daemon=True)

    def start(self) -> None:
        """Start sending."""
        self._thread.start()

    def hold(self) -> None:
        """Delay all records until `go_on`; none is skipped."""
        self._held.set()

    def go_on(self) -> None:
        """Send the delayed records, and continue."""
        self._held.clear()

    def keep_back(self, partition: int) -> None:
        """Delay the records of a partition until `send_kept`; the others go on."""
        self._keeps = partition

    def send_kept(self) -> None:
        """Send the delayed records, in their order, before further ones."""
        self._keeps = None

    @property
    def sent(self) -> tuple[Sent, ...]:
        """The acknowledged records."""
        return tuple(self._sent)

    def finish(self) -> int:
        """Send the closing records, and wait until all records are delivered.

        Returns:
            The event time up to which all results are expected (ms).

        Raises:
            RuntimeError: a record was not delivered.
        """
        self._stop.set()
        self._thread.join(DELIVERED_WITHIN_S)
        done_ms = self._largest_ms
        settle_ms = self._case.settle_ms
        self._keeps = None
        self._send_all(self._case.close(done_ms + 2 * settle_ms))
        left = self._producer.flush(DELIVERED_WITHIN_S)
        if left or self._failed is not None:
            raise RuntimeError(f"{self._case.name}: {left} records on their way, {self._failed}")
        return done_ms + settle_ms

    def stop(self) -> None:
        """Stop sending, without errors."""
        self._stop.set()
        self._thread.join(10)
        self._producer.purge()

    def _run(self) -> None:
        began, count = time.monotonic(), 0
        while not self._stop.wait(TICK_S):
            if self._held.is_set():
                continue
            due = int((time.monotonic() - began) * self._case.per_second) - count
            self._send_all(next(self._records) for _ in range(due))
            count += due

    def _send_all(self, records: Iterable[Fed]) -> None:
        keeps = self._keeps
        if keeps is None:
            kept, self._kept = self._kept, []
            records = (*kept, *records)
        for fed in records:
            if fed.partition == keeps:
                self._kept.append(fed)
            else:
                self._send(fed)
        self._producer.poll(0)

    def _send(self, fed: Fed) -> None:
        encoder = self._encode[fed.stream]
        value = encoder.value(fed)
        self._largest_ms = max(self._largest_ms, self._case.event_ms(fed) or 0)

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._failed = str(error)
                return
            self._sent.append(_sent(fed, value, message))

        self._producer.produce(
            encoder.topic,
            value,
            fed.key,
            fed.partition,
            on_delivery=delivered,
            timestamp=time.time_ns() // 1_000_000 + fed.clock_ms,
        )


def _sent(fed: Fed, value: bytes | None, message: Message) -> Sent:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise RuntimeError("a delivery report does not say where the record stands")
    return Sent(
        place=Place(TopicName(topic), partition, offset),
        stream=StreamName(fed.stream),
        fate=fed.fate,
        key=fed.key,
        value=value,
        timestamp_ms=message.timestamp()[1],
        fields=None if fed.fate is Fate.BAD else fed.fields,
    )
