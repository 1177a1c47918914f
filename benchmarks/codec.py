"""Cost of Medusa's Avro encoding and decoding, compared with confluent-kafka's serializers.

Both sides write records framed with a schema's id, and read them by that id, each with a client of
one registry on loopback and a warm cache. Medusa's side is the conversion of `medusa produce` and
`medusa tail` between a Python value and a record: prefix, the writer's schema, body. The other is
`AvroSerializer` and `AvroDeserializer` in their fastest configuration: subjects named by the topic,
and no context for decoding. Rounds are interleaved, times are CPU times, and the results of the
sides are compared.

    python -m benchmarks.codec --rounds 15
"""

import argparse
import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from benchmarks.codec_kinds import KINDS, Kind
from benchmarks.harness import median
from schemas.avro import parse
from schemas.client import RegistryClient
from schemas.codec import decode, encode
from schemas.server import RegistryServer
from schemas.wire import Framed, Part, identified, join
from tests.memory_store import MemoryStore, MemoryTree

THEIRS = {"subject.name.strategy": topic_subject_name_strategy}
Step = Callable[[Any], Any]
"""An encoder of a value, or a decoder of a record."""


@dataclass(frozen=True, slots=True)
class Clients:
    """One registry, and both sides' clients."""

    ours: RegistryClient
    theirs: Any


@dataclass(frozen=True, slots=True)
class Job:
    """The work of both sides: the items, and each side's function of an item."""

    what: str
    items: Sequence[Any]
    theirs: Step
    ours: Step


@dataclass(frozen=True, slots=True)
class Measured:
    """The medians of a job, in µs per record, and the worst ratio of a round."""

    what: str
    theirs: float
    ours: float
    lowest: float


@contextmanager
def registry() -> Iterator[Clients]:
    """Medusa's registry in memory, served on loopback."""
    server = RegistryServer(MemoryStore(MemoryTree()), "127.0.0.1", 0)
    server.start()
    ours = RegistryClient(server.url)
    try:
        with SchemaRegistryClient({"url": server.url}) as theirs:
            yield Clients(ours, theirs)
    finally:
        ours.close()
        server.stop()


def jobs(kind: Kind, clients: Clients) -> Iterator[Job]:
    """Encoding and decoding of a kind of record; only decoding with another reader schema.

    Raises:
        SystemExit: the sides have different results.
    """
    topic = kind.name.replace(" ", "-")
    context = SerializationContext(topic, MessageField.VALUE)
    serializer = AvroSerializer(clients.theirs, kind.writer, conf=THEIRS)
    records = [serializer(value, context) for value in kind.values]
    encoding = Job(
        f"{kind.name}: encode",
        kind.values,
        lambda value: serializer(value, context),
        our_encoder(kind, clients.ours, f"{topic}-value"),
    )
    decoding = Job(
        f"{kind.name}: decode",
        records,
        AvroDeserializer(clients.theirs, kind.reader, conf=THEIRS),
        our_decoder(kind, clients.ours),
    )
    for job in (encoding, decoding):
        if [job.ours(item) for item in job.items] != [job.theirs(item) for item in job.items]:
            raise SystemExit(f"{job.what}: the sides do not make the same")
    if kind.reader is None:
        yield encoding
    yield decoding


def our_encoder(kind: Kind, client: RegistryClient, subject: str) -> Step:
    """Encoder of `medusa produce`, with a cached schema and id."""
    schema, schema_id = parse(kind.writer), client.register(subject, kind.writer)
    return lambda value: join(schema_id, encode(schema, value))


def our_decoder(kind: Kind, client: RegistryClient) -> Step:
    """Decoder of `medusa tail`, by the schema id in the record."""
    reader = parse(kind.reader) if kind.reader else None

    def read(record: bytes) -> Any:
        framed = identified(record, (), Part.VALUE)
        schema = client.schema_of(framed.schema) if isinstance(framed, Framed) else None
        if schema is None or not isinstance(framed, Framed):
            raise SystemExit("a record names no schema of the registry")
        return decode(schema, reader or schema, framed.body)

    return read


def microseconds(step: Step, items: Sequence[Any], seconds: float) -> float:
    """CPU time of a step per item; all items are repeated until the time is over."""
    gc.collect()
    done, begun = 0, time.thread_time()
    while (taken := time.thread_time() - begun) < seconds:
        for item in items:
            step(item)
        done += len(items)
    return taken / done * 1e6


def measure(job: Job, rounds: int, seconds: float) -> Measured:
    """Measure both sides alternately; the first side changes with each round."""
    pairs = []
    for number in range(-1, rounds):
        sides = {"theirs": job.theirs, "ours": job.ours}
        order = sorted(sides, reverse=bool(number % 2))
        found = {side: microseconds(sides[side], job.items, seconds) for side in order}
        if number >= 0:  # the first one is warm-up
            pairs.append((found["theirs"], found["ours"]))
    theirs, ours = (median(side) for side in zip(*pairs, strict=True))
    return Measured(job.what, theirs, ours, min(one / other for one, other in pairs))


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="a side's turn (%(default)s)")
    options = parser.parse_args(arguments)
    with registry() as clients:
        found = [
            measure(job, options.rounds, options.seconds)
            for kind in KINDS
            for job in jobs(kind, clients)
        ]
    print("| one record | confluent-kafka | ours | confluent-kafka / ours | worst round |")
    print("|---|---|---|---|---|")
    for one in found:
        ratio = one.theirs / one.ours
        print(
            f"| {one.what} | {one.theirs:.1f} µs | {one.ours:.1f} µs | {ratio:.2f} "
            f"| {one.lowest:.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
