"""Whether a source fulfils its contract, `connectors/source.py`."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brokers.kafka_interface import BEGINNING
from brokers.records import KafkaRecord, NewTopicSpec
from connectors.conformance.crashing import Crash, CrashingKafka, Steps, each_crash
from connectors.running.source_runner import SourceRunner, Target
from connectors.source import Chunk, Limit, Position, Refused, Row, Source, SplitId
from pipeline.clock import Clock
from pipeline.ids import ConnectorName, ParticipantId, SchemaId, TopicName
from pipeline.names import ConnectorNames
from schemas.avro import AvroSchema
from schemas.codec import encode, from_json
from schemas.wire import join

LIMITS = (Limit(1, 1), Limit(2, 1_000_000), Limit(1_000, 1_000_000))
ROUNDS_MAX = 10_000
TOPIC = TopicName("records")
NAMES = ConnectorNames(ParticipantId("local"), ConnectorName("tried"))
SCHEMA_ID = SchemaId(7)


@dataclass(frozen=True, slots=True)
class SourceWorld:
    """A source that is tried; nothing changes at its other end meanwhile.

    Args:
        open: a new one, as a new process would make it.
        expected: the bytes of all its records and of all that is none, in any order.
        schema: that of the records.
        clock: of the runner.
    """

    open: Callable[[], Source]
    expected: Sequence[bytes]
    schema: AvroSchema
    clock: Clock


def check_source(world: SourceWorld) -> None:
    """Try all obligations.

    Raises:
        AssertionError: one is not fulfilled; says which.
    """
    whole = [_read_all(world.open(), limit) for limit in LIMITS]
    for found in whole:
        got = Counter(one.raw for chunks in found.values() for c in chunks for one in c.records)
        _same(got, Counter(world.expected), "records of all chunks (2)")
        orders = {s: [one for c in chunks for one in c.records] for s, chunks in found.items()}
        first = {s: [one for c in chunks for one in c.records] for s, chunks in whole[0].items()}
        _same(orders, first, "order of records, by limit (1, 5)")
    _check_repeatable(world, whole[0])
    each_crash(lambda steps: _check_runner(world, steps))


def _read_all(source: Source, limit: Limit) -> dict[SplitId, list[Chunk]]:
    """All chunks of each split."""
    positions: dict[SplitId, Position] = {}
    found: dict[SplitId, list[Chunk]] = {}
    for _ in range(ROUNDS_MAX):
        moved = False
        for split in source.splits(dict(positions)):
            chunk = source.read(split, positions.get(split), limit)
            _check_limit(chunk, limit)
            _same(json.loads(json.dumps(chunk.position)), chunk.position, "position as JSON (2)")
            if chunk.records:
                found.setdefault(split, []).append(chunk)
            moved = moved or chunk.position != positions.get(split)
            positions[split] = chunk.position
        if not moved:
            source.close()
            return found
    raise AssertionError(f"a source without an end: {ROUNDS_MAX} rounds, and still more")


def _check_limit(chunk: Chunk, limit: Limit) -> None:
    size = sum(len(one.raw) for one in chunk.records)
    if len(chunk.records) > 1:
        fits = len(chunk.records) <= limit.records and size <= limit.size_bytes
        _same(fits, expected=True, what=f"size of a chunk, {len(chunk.records)}, {size} bytes (5)")


def _check_repeatable(world: SourceWorld, found: dict[SplitId, list[Chunk]]) -> None:
    """Each chunk again, by another instance, from the position of the one before."""
    positions = {split: chunks[-1].position for split, chunks in found.items()}
    for split, chunks in found.items():
        before: Position | None = None
        for chunk in chunks:
            source = world.open()
            known = {**positions, split: before} if before is not None else dict(positions)
            if before is None:
                del known[split]
            source.splits(known)
            again = source.read(split, before, LIMITS[0])
            source.close()
            _same(again.records, chunk.records, f"records of {split} read again (3)")
            before = chunk.position


def _check_runner(world: SourceWorld, steps: Steps) -> None:
    """A run that crashes at a step, and a second one that goes on."""
    kafka = CrashingKafka(world.clock, steps)
    kafka.create_topics((NewTopicSpec(TOPIC, 2, 1),))
    for _ in range(2):
        runner = SourceRunner(
            NAMES,
            world.open(),
            Target(TOPIC, world.schema, SCHEMA_ID),
            kafka,
            kafka,
            world.clock,
            Limit(3, 1_000_000),
        )
        try:
            runner.start()
            while (passed := runner.step()).more or passed.records or passed.refused:
                pass
        except Crash:
            continue
        break
    rows, refused = _expected(world)
    _same(Counter(one.value for one in _records(kafka, TOPIC)), rows, "records in the topic")
    letters = Counter(one.value for one in _records(kafka, NAMES.dead_letters))
    _same(letters, refused, "dead letters")


def _expected(world: SourceWorld) -> tuple[Counter[bytes | None], Counter[bytes | None]]:
    """Values in the topic, and dead letters."""
    rows: Counter[bytes | None] = Counter()
    refused: Counter[bytes | None] = Counter()
    for chunks in _read_all(world.open(), LIMITS[-1]).values():
        for one in (one for chunk in chunks for one in chunk.records):
            if isinstance(one, Refused):
                refused[one.raw] += 1
            else:
                rows[_value(world, one)] += 1
    return rows, refused


def _value(world: SourceWorld, row: Row) -> bytes:
    return join(SCHEMA_ID, encode(world.schema, from_json(world.schema, dict(row.fields))))


def _records(kafka: CrashingKafka, topic: TopicName) -> list[KafkaRecord]:
    """All records of committed transactions of a topic; none if it does not exist."""
    ends = kafka.end_offsets([topic])
    with kafka.reader(1.0) as reader:
        reader.assign({name: dict.fromkeys(offsets, BEGINNING) for name, offsets in ends.items()})
        return list(reader.read_to(ends))


def _same(found: object, expected: object, what: str) -> None:
    """Compare, with a message."""
    if found != expected:
        raise AssertionError(f"{what}: found {found!r}, expected {expected!r}")
