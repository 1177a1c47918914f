"""The sides that are compared: Medusa, plain PySpark, Kafka Streams and Flink, one run at a time.

A run is one side in one round. Its output topics, and Medusa's network, are its own, so that runs
are independent.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.harness import (
    PLAIN,
    SINK_HELP,
    SOURCE,
    Stack,
    create_topics,
    delete_topics,
    our_side,
    plain_side,
)
from benchmarks.peers import programs
from benchmarks.peers.programs import PEERS
from benchmarks.peers.running import peer_side, prepare
from benchmarks.readings import AVERAGE_JSON, CONVERTED_JSON, HERE, MAXIMUM_JSON
from pipeline.ids import SchemaHandle, SchemaId
from schemas import avro, codec, wire
from schemas.client import RegistryClient

OURS = "ours"
SIDES = ("sink", "plain", *PEERS, OURS)
DEFAULT_SIDES = ("plain", OURS)
EXACT = (OURS, "flink")
"""Sides whose event time is that of the slowest partition, so that no window may differ."""
GRACE_MS = 500
"""Kafka Streams' time moves with the fastest partition, so it has to wait for the others."""


@dataclass(frozen=True, slots=True)
class Job:
    """A compared job: its schema of results, not for ours, and the topics in our document."""

    result_schema: str
    topics: tuple[str, ...]


JOBS: Mapping[str, Job] = {
    "stateless": Job(CONVERTED_JSON, ("bench-converted",)),
    "window": Job(AVERAGE_JSON, ("bench-averages",)),
    "chain": Job(MAXIMUM_JSON, ("bench-sensors", "bench-sites", "bench-everything")),
}
"""By name, which is also that of the document."""


@dataclass(frozen=True, slots=True)
class Run:
    """One side in one round of a job; a grace only of Kafka Streams."""

    job: str
    side: str
    turn: int
    source: str = SOURCE
    grace_ms: int = 0

    @property
    def name(self) -> str:
        """Unique name, part of the names of topics."""
        return f"{self.job}-{self.side}-{self.turn}"

    @property
    def targets(self) -> tuple[str, ...]:
        """Output topics; of the chain, one for each window."""
        return tuple(f"{topic}-{self.name}" for topic in JOBS[self.job].topics)

    @property
    def network(self) -> str:
        """Medusa's network."""
        return "bench_" + self.name.replace("-", "_")

    @property
    def last_box(self) -> str:
        """The fragment that writes the last target."""
        return JOBS[self.job].topics[-1].removeprefix("bench-")

    def document(self, text: str) -> str:
        """Medusa's document of the job, with the names of this run."""
        names = dict(zip(JOBS[self.job].topics, self.targets, strict=True))
        text = text.replace(f"network: bench_{self.job}\n", f"network: {self.network}\n")
        for before, after in {SOURCE: self.source, **names}.items():
            for end in (",", "\n"):
                text = text.replace(f"topic: {before}{end}", f"topic: {after}{end}")
        return text


def prepare_peers(stack: Stack, options: argparse.Namespace) -> None:
    """Fetch and compile what the peers among the sides need; ends the benchmark if it cannot."""
    for side in options.sides:
        if side in PEERS:
            prepare(stack, side)


@contextmanager
def running(stack: Stack, run: Run, schema_id: int, options: argparse.Namespace) -> Iterator[None]:
    """Run one side during the block; its topics are left."""
    if run.side == OURS:
        text = (HERE / f"{run.job}.yaml").read_text(encoding="utf-8")
        (stack.folder / f"{run.name}.yaml").write_text(run.document(text), encoding="utf-8")
        with our_side(stack, f"{run.name}.yaml", run.network):
            yield
        return
    create_topics(stack, *run.targets)
    if run.side in PLAIN:
        batch_records = options.batch_records
        with plain_side(
            stack, run.side, run.job, run.targets, source=run.source, batch_records=batch_records
        ):
            yield
        return
    job = programs.Job(
        run.job,
        run.name,
        stack.bootstrap_servers,
        run.source,
        run.targets,
        schema_id,
        stack.folder / f"peer-{run.name}",
        run.grace_ms,
    )
    with peer_side(stack, run.side, job, JOBS[run.job].result_schema):
        yield


def remove(stack: Stack, run: Run) -> None:
    """Remove what a run left: its network, if any, and its topics."""
    if run.side == OURS:
        stack.medusa("destroy", run.network, "--yes")
    delete_topics(stack, *run.targets)


def decoder(stack: Stack, run: Run) -> Callable[[bytes], Mapping[str, Any]]:
    """A function that decodes a result; only Medusa's schemas are in the registry."""
    registry = RegistryClient(stack.registry_url)
    known: dict[SchemaHandle, avro.AvroSchema] = {}
    if run.side != OURS:
        known[SchemaId(1)] = avro.parse(JOBS[run.job].result_schema)

    def decode(value: bytes) -> Mapping[str, Any]:
        framed = wire.split(value)
        if not isinstance(framed, wire.Framed):
            raise SystemExit(f"{run.name}: a result is not in the wire format")
        schema = known.get(framed.schema) or registry.schema_of(framed.schema)
        if schema is None:
            raise SystemExit(f"{run.name}: a result has no schema")
        known[framed.schema] = schema
        row: Mapping[str, Any] = codec.decode(schema, schema, framed.body)
        return row

    return decode


def runs(job: str, turn: int, options: argparse.Namespace) -> list[Run]:
    """The runs of a round, in order."""
    return [
        Run(job, side, turn, SOURCE, options.grace_ms if side == "kafka-streams" else 0)
        for side in in_turn(options.sides, turn)
    ]


def in_turn(sides: Sequence[str], turn: int) -> tuple[str, ...]:
    """The order of the sides in a round, turned each time.

    >>> in_turn(("plain", "ours"), 1)
    ('ours', 'plain')
    """
    return tuple(reversed(sides)) if turn % 2 else tuple(sides)


def against(sides: Sequence[str]) -> tuple[str, ...]:
    """The sides that ours is compared with."""
    return tuple(side for side in sides if side != OURS) if OURS in sides else ()


def add_options(parser: argparse.ArgumentParser, repeat: int) -> None:
    """Options of a benchmark with sides."""
    add = parser.add_argument
    add("--sides", choices=SIDES, nargs="+", default=DEFAULT_SIDES, help=SINK_HELP)
    add("--repeat", type=int, default=repeat, help="rounds; their order is turned each time")
    add("--grace-ms", type=int, default=GRACE_MS, help="of Kafka Streams' windows (%(default)s)")
    add("--batch-records", type=int, default=400_000, help="the plain script's batches, at most")
    add("--quick", action="store_true", help="one short round, to try it out; says nothing")
