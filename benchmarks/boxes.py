"""Throughput and latency of each kind of box, compared with plain PySpark, in one run.

Each side of a kind has its own preloaded readings, 1,000 per second of rising event time. The rate
counts the records of completed batches, from the first to the last; `behind` is the time for which
results are published after that. Then the same query reads 1,000 readings a second: latency is from
a result's due time, as defined in `kinds.py`, until a `read_committed` reader receives it. Medusa
is exactly once; `sink` is Spark's own Kafka sink, at least once; `plain` writes with a transaction
for each batch. CPU time is that of the side's Python and Java, without the servers. Other load
should affect it less than it affects rates, which has not been checked.

    python -m benchmarks.boxes --kinds filter map --rounds 3
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from benchmarks import latency
from benchmarks.both_sides import PlainNode, Progress, Run, plain_node, progress, running
from benchmarks.harness import (
    SINK_HELP,
    Stack,
    create_topics,
    fed,
    feed,
    median,
    percentile,
    reader,
    register_reading,
    running_stack,
    stable_end,
)
from benchmarks.kinds import KINDS, Kind
from benchmarks.processes import computed_s, node_of
from benchmarks.throughput import follow, rate
from pipeline.ids import SchemaHandle, SchemaId
from schemas import avro, codec, wire
from schemas.client import RegistryClient

QUIET_S = 4.0
BEHIND_MAX_S = 300.0
HEAD = (
    "kind",
    "{0}",
    "ours",
    "{0} / ours",
    "processor {0} / ours",
    "ours / {0}",
    "behind {0} / ours",
    "p50 / p99 {0}",
    "p50 / p99 ours",
    "ours / {0}",
    "{0} is not exact:",
)
SIDES = ("sink", "plain", "ours")


@dataclass(frozen=True, slots=True)
class Measured:
    """One side in one round.

    Args:
        run: the measured run.
        rate: records a second.
        computed_us: CPU time per record, of the processes that run the job, in µs.
        behind_s: time from the last reading to the last result of the preloaded ones.
        p50: latency in ms, and
        p99: 99th percentile in ms.
        timed: number of measured results.
    """

    run: Run
    rate: float
    computed_us: float
    behind_s: float
    p50: float
    p99: float
    timed: int


def due_ms(registry: RegistryClient, run: Run) -> Callable[[Message], int]:
    """A function that returns the due time of a result."""
    kind: Kind = KINDS[run.kind]
    ours = run.side == "ours"
    due = kind.due if ours or kind.plain_due is None else kind.plain_due
    known: dict[SchemaHandle, avro.AvroSchema] = (
        {} if ours else {SchemaId(1): avro.parse(kind.schema)}
    )

    def in_value(message: Message) -> int:
        framed = wire.split(message.value())
        if not isinstance(framed, wire.Framed):
            raise SystemExit("a result is not in the wire format")
        schema = known.get(framed.schema) or registry.schema_of(framed.schema)
        if schema is None:
            raise SystemExit("a result has no schema")
        known[framed.schema] = schema
        return round(due(codec.decode(schema, schema, framed.body)))

    return in_value


@dataclass(frozen=True, slots=True)
class Bench:
    """Shared resources of all runs."""

    stack: Stack
    node: PlainNode
    registry: RegistryClient
    schema_id: int
    options: argparse.Namespace

    def rounds(self, kind: str) -> list[Measured]:
        """All rounds of a kind; the first side changes with each."""
        sides: tuple[str, ...] = tuple(self.options.sides)
        return [
            self.measure(Run(kind, side, turn))
            for turn in range(1, self.options.rounds + 1)
            for side in (sides if turn % 2 else reversed(sides))
        ]

    def load(self, run: Run) -> None:
        """Preload a run's input."""
        create_topics(self.stack, *run.sources)
        count = self.options.records
        fed(feed(self.stack, "rising", self.schema_id, run.sources, records=count, rate=1_000))

    def warm_up(self, run: Run) -> None:
        """A run that only warms up both Java processes."""
        self.load(run)
        with running(self.stack, self.node, run), progress(self.stack, self.node, run) as read:
            follow(read, self.options.records, run.name)

    def measure(self, run: Run) -> Measured:
        """One side in one round."""
        self.load(run)
        with running(self.stack, self.node, run):
            with progress(self.stack, self.node, run) as read:
                seen, computed_us = self.computed(run, read)
            behind_s = self.settled(run)
            feeding = feed(
                self.stack,
                "steady",
                self.schema_id,
                run.sources,
                rate=1_000,
                warm_up=self.options.warm_up,
                seconds=self.options.seconds,
            )
            due = due_ms(self.registry, run)
            results, from_ms, _ = latency.watch(
                self.stack, (run.target,), feeding, due, QUIET_S, at_end=True
            )
        late = [one.held_ms - one.event_ms for one in results if one.event_ms >= from_ms]
        if not late:
            raise SystemExit(f"{run.name}: no result came of the readings that were timed")
        measured = Measured(
            run,
            rate(seen, 0),
            computed_us,
            behind_s,
            percentile(late, 0.5),
            percentile(late, 0.99),
            len(late),
        )
        print(
            f"{run.name:>24}: {measured.rate / 1e3:6.1f} k/s  {measured.computed_us:5.1f} µs"
            f"  {measured.behind_s:5.1f} s behind"
            f"  p50 {measured.p50:7.0f} ms"
            f"  p99 {measured.p99:7.0f} ms  ({measured.timed} results)",
            flush=True,
        )
        return measured

    def settled(self, run: Run) -> float:
        """Wait until no result is written; returns the time until the last one."""
        consumer = reader(self.stack, run.target, at_end=True)
        begun = changed = time.monotonic()
        end = stable_end(consumer, run.target)
        while (now := time.monotonic()) - changed < QUIET_S:
            if now - begun > BEHIND_MAX_S:
                raise SystemExit(f"{run.name}: results go on coming after {BEHIND_MAX_S:.0f} s")
            if (newest := stable_end(consumer, run.target)) != end:
                end, changed = newest, now
            time.sleep(0.05)
        consumer.close()
        return changed - begun

    def computed(self, run: Run, read: Progress) -> tuple[list[tuple[float, int]], float]:
        """A side's progress on the preloaded readings, and its CPU time per record."""
        root = node_of(self.stack.pid) if run.side == "ours" else self.node.process.pid
        steps: list[tuple[int, float]] = []

        def reached() -> int:
            count = read()
            if count and (not steps or count > steps[-1][0]):
                steps.append((count, computed_s(root)))
            return count

        seen = follow(reached, self.options.records, run.name)
        (first, before_s), (last, after_s) = steps[0], steps[-1]
        return seen, (after_s - before_s) / max(1, last - first) * 1e6


def summary(kind: str, found: Sequence[Measured], against: str) -> str:
    """One row of the table: medians, and the ratios of rates and latencies."""

    def of(side: str, figure: str) -> float:
        return median([getattr(m, figure) for m in found if m.run.side == side])

    rates, computed, behind, p50s, p99s = (
        tuple(of(side, figure) for side in (against, "ours"))
        for figure in ("rate", "computed_us", "behind_s", "p50", "p99")
    )
    return (
        f"| {kind} | {rates[0] / 1e3:.0f} k/s | {rates[1] / 1e3:.0f} k/s"
        f" | {rates[0] / rates[1]:.2f} | {computed[0]:.1f} / {computed[1]:.1f} µs"
        f" | {computed[1] / computed[0]:.2f} | {behind[0]:.1f} / {behind[1]:.1f} s"
        f" | {p50s[0]:,.0f} / {p99s[0]:,.0f} ms"
        f" | {p50s[1]:,.0f} / {p99s[1]:,.0f} ms"
        f" | {p50s[1] / p50s[0]:.2f} / {p99s[1] / p99s[0]:.2f} | {KINDS[kind].short_of} |"
    )


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--kinds", choices=tuple(KINDS), nargs="+", default=tuple(KINDS))
    add("--records", type=int, default=1_600_000, help="preloaded for each run (%(default)s)")
    add("--rounds", type=int, default=1, help="their order is turned each time (%(default)s)")
    add("--sides", choices=SIDES, nargs="+", default=("sink", "ours"), help=SINK_HELP)
    add("--warm-up", type=float, default=5.0, help="seconds before latencies count")
    add("--seconds", type=float, default=8.0, help="seconds in which they count")
    options = parser.parse_args(arguments)
    found: list[Measured] = []
    failed: list[str] = []
    with running_stack() as stack, plain_node(stack) as node:
        registry = RegistryClient(stack.registry_url)
        bench = Bench(stack, node, registry, register_reading(stack), options)
        for side in options.sides:
            bench.warm_up(Run(options.kinds[0], side, 0))
        for kind in options.kinds:
            try:
                found += bench.rounds(kind)
            except SystemExit as failure:  # the other kinds are still measured
                failed.append(kind)
                print(f"{kind}: {failure}", flush=True)
        registry.close()
    print(f"\nmedians of {options.rounds} rounds")
    beside = [side for side in options.sides if side != "ours"] if "ours" in options.sides else []
    for against in beside:
        print("\n|", *(f"{title.format(against)} |" for title in HEAD))
        print("|" + "---|" * len(HEAD))
        for kind in (kind for kind in options.kinds if kind not in failed):
            print(summary(kind, [m for m in found if m.run.kind == kind], against))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
