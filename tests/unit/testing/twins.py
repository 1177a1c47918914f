"""Test doubles of queries, computed in Python: filters, and counts in windows of a minute."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from brokers.records import KafkaRecord
from pipeline.ids import BatchId, Millis, SchemaId
from pipeline.lanes.batch import BatchFacts
from pipeline.lanes.dead_letter_reasons import Reason
from pipeline.markers.positions import InputPartition, Positions
from pipeline.network.document import SchemaText, load, schema_references
from pipeline.network.model import Network
from pipeline.spark.batch.rejected import Rejected
from pipeline.spark.query.lowered import Lowered
from pipeline.spark.query.reasons import Why
from pipeline.testing.lane import RunningQuery, Write
from schemas.avro import parse
from schemas.codec import decode, encode
from schemas.wire import Framed, join, split

MINUTE = 60_000
SCHEMA = """
{"type": "record", "name": "Sighting", "fields": [
  {"name": "car", "type": "string"},
  {"name": "speed", "type": "double", "default": 1.0},
  {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
]}
"""
DOCUMENT = """
network: cars
window: 1m
streams:
  sightings:
    {topic: car-sightings, schema: sighting.avsc, event_time: at, lateness: 5s, idle_after: 10s}
boxes:
  moving: {filter: sightings, where: speed > 0}
  counts: {aggregate: sightings, by: [car], compute: {n: count(*)}}
  busy: {filter: counts, where: n > 1}
outputs:
  moving: {topic: moving-cars}
  busy: {topic: busy-cars}
"""


def network(text: str = DOCUMENT) -> Network:
    """The network of a document."""
    references = schema_references(text, "cars.yaml")
    return load(text, "cars.yaml", {r: SchemaText(SCHEMA, r.value) for r in references})


@dataclass
class Toy:
    """One batch after the other, as Spark runs them; it is also what a sink asks of the engine.

    Rows of the input go through `keep`; a fragment with state counts them by car and minute.
    """

    lowered: Lowered
    write: Write
    keep: Callable[[dict[str, Any]], bool]
    closed: bool = False
    _todo: list[tuple[Sequence[KafkaRecord], Positions]] = field(default_factory=list)
    _state: dict[tuple[int, str], int] = field(default_factory=dict)
    _rows: list[tuple[bytes, int]] = field(default_factory=list)
    _late: list[KafkaRecord] = field(default_factory=list)
    _passed: list[tuple[KafkaRecord, int]] = field(default_factory=list)
    _facts: BatchFacts | None = None
    _next: int = 0
    _watermark: int | None = None
    _moves_to: int | None = None
    _judged_by: int | None = None

    def add(self, records: Sequence[KafkaRecord], ends: Positions) -> None:
        """As of `RunningQuery`."""
        self._todo.append((records, ends))

    def move(self, watermark_ms: Millis, ends: Positions) -> None:
        """As of `RunningQuery`."""
        assert self.lowered.core is not None, "a query without state has no watermark"
        self._moves_to = watermark_ms
        self._todo.append(((), ends))

    def drain(self) -> None:
        """A batch for the added records, and one more if the watermark moves after it."""
        for records, ends in self._todo:
            self._batch(records, ends)
            if self._moves_to is not None:
                self._watermark, self._moves_to = self._moves_to, None
                self._batch((), ends)
        self._todo = []

    def close(self) -> None:
        """As of `RunningQuery`."""
        self.closed = True

    def toArrow(self) -> pa.Table:  # noqa: N802 - Spark's name
        """The rows of the batch."""
        return pa.table(
            {
                "key": pa.array([None] * len(self._rows), pa.binary()),
                "value": pa.array([value for value, _ in self._rows], pa.binary()),
                "timestamp_ms": pa.array([at for _, at in self._rows], pa.int64()),
                "partition": pa.array([-1] * len(self._rows), pa.int32()),
                "reason": pa.array([None] * len(self._rows), pa.string()),
            }
        )

    def batch_facts(self, batch: int, rows: pa.Table | None = None) -> BatchFacts:
        """Its facts."""
        del rows
        assert self._facts is not None
        assert self._facts.batch == batch
        return self._facts

    def rejected(self, start: Positions, end: Positions, late_ms: Millis | None) -> list[Rejected]:
        """The late ones."""
        del start, end
        source = self.lowered.sources[0]
        why = Why(Reason.LATE, f"late, {late_ms} is over")
        early = [one for one, at_ms in self._passed if late_ms is not None and at_ms <= late_ms]
        return [
            Rejected(source.input, "only", why, r.topic, r.partition, r.offset, r.timestamp_ms,
                     r.key, r.value, r.headers)
            for r in (*self._late, *early)
        ]  # fmt: skip

    def unknown_schemas(self, start: Positions, end: Positions) -> tuple[SchemaId, ...]:
        """There are none."""
        del start, end
        return ()

    def _batch(self, records: Sequence[KafkaRecord], ends: Positions) -> None:
        late_ms, self._judged_by = self._judged_by, self._watermark
        largest: dict[InputPartition, Millis] = {}
        self._rows, self._late, self._passed = [], [], []
        for record in records:
            assert record.value is not None
            at_ms = self._take(record, late_ms)
            at = InputPartition(self.lowered.sources[0].input, record.topic, record.partition)
            largest[at] = Millis(max(at_ms, largest.get(at, at_ms)))
        self._close_windows()
        stateful = self.lowered.core is not None
        self._facts = BatchFacts(
            batch=BatchId(self._next),
            end=ends,
            late_ms=Millis(late_ms) if stateful and late_ms is not None else None,
            eviction_ms=Millis(self._watermark) if stateful and self._watermark else None,
            records=len(records),
            bad=0,
            unknown=(),
            late=len(self._late) if stateful else 0,
            largest=largest,
        )
        self.write(self, self._next, self, self)
        self._next += 1

    def _take(self, record: KafkaRecord, late_ms: int | None) -> int:
        """Compute with one record; its event time."""
        source = self.lowered.sources[0]
        framed = split(record.value)
        assert isinstance(framed, Framed)
        schema = next(parse(w.json) for w in source.writers if w.handle == framed.schema)
        row = decode(schema, schema, framed.body)
        at_ms = int(row["at"].timestamp() * 1000) if "at" in row else record.timestamp_ms
        if self.lowered.core is None:
            if self.keep(row):
                self._rows.append((self._encoded(row), at_ms))
                self._passed.append((record, at_ms))
            return at_ms
        end = at_ms // MINUTE * MINUTE + MINUTE
        if late_ms is not None and end <= late_ms:
            self._late.append(record)
        else:
            self._state[end, row["car"]] = self._state.get((end, row["car"]), 0) + 1
        return at_ms

    def _close_windows(self) -> None:
        for end, car in sorted(self._state):
            if self._watermark is not None and end <= self._watermark:
                n = self._state.pop((end, car))
                row = {"car": car, "window_start": end - MINUTE, "window_end": end, "n": n}
                self._rows.append((self._encoded(row), end))

    def _encoded(self, row: dict[str, Any]) -> bytes:
        encoding = self.lowered.encoding
        return join(encoding.value_id, encode(parse(encoding.value_json), row))


@dataclass
class Toys:
    """Starts toy queries, and records them."""

    started: list[Toy] = field(default_factory=list)

    def __call__(self, lowered: Lowered, write: Write) -> RunningQuery:
        """A query whose filter is the one of `DOCUMENT`."""

        def keep(row: dict[str, Any]) -> bool:
            return bool(row["n"] > 1 if "n" in row else row["speed"] > 0)

        toy = Toy(lowered, write, keep)
        self.started.append(toy)
        return toy
