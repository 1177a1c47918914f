"""Throughput on preloaded Avro readings of about 110 bytes, exactly once, beside other sides.

The readings are in the topic before any side starts. The rate counts records visible to a
`read_committed` reader; `warm` excludes the first quarter, in which the JVM compiles. All results
are compared with a reference; a side with another result ends the benchmark.

    python -m benchmarks.throughput --records 8000000
    python -m benchmarks.throughput --sides plain kafka-streams flink ours --repeat 8
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks import reference
from benchmarks.harness import (
    SOURCE,
    Stack,
    create_topics,
    fed,
    feed,
    reader,
    register_reading,
    running_stack,
    stable_end,
)
from benchmarks.readings import READING_JSON
from benchmarks.rounds import completed, ratios, spread
from benchmarks.sides import (
    OURS,
    Run,
    add_options,
    against,
    decoder,
    prepare_peers,
    remove,
    running,
    runs,
)
from schemas import avro, codec

STALLED_AFTER_S = 240.0
LOADERS = 2
SILENCE_S = 5.0
PREFIX_BYTES = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One side in one round; records a second."""

    side: str
    whole: float
    warm: float


def watch(stack: Stack, topic: str, records: int) -> list[tuple[float, int]]:
    """Visible outputs over time, from the first to the last: (seconds, count)."""
    consumer = reader(stack, topic, at_end=True)
    try:
        return follow(lambda: stable_end(consumer, topic), records, topic)
    finally:
        consumer.close()


def follow(reached: Callable[[], int], until: int, what: str) -> list[tuple[float, int]]:
    """A count over time until it reaches a value: (seconds, count), one point per step."""
    seen: list[tuple[float, int]] = []
    changed_at = time.monotonic()
    while not seen or seen[-1][1] < until:
        count_now = reached()
        now = time.monotonic()
        if count_now > (seen[-1][1] if seen else 0):
            seen.append((now, count_now))
            changed_at = now
        if now - changed_at > STALLED_AFTER_S:
            raise SystemExit(f"{what} stands still at {count_now} of {until}")
        time.sleep(0.05)
    return seen


def rate(seen: Sequence[tuple[float, int]], above: int) -> float:
    """Records a second between the first point beyond `above` and the last point."""
    points = [point for point in seen if point[1] > above]
    (first_s, first), (last_s, last) = points[0], points[-1]
    if last_s <= first_s:
        raise SystemExit("too few batches to measure a rate: use more records")
    return (last - first) / (last_s - first_s)


def counted(stack: Stack, topic: str) -> Counter[bytes]:
    """Values of a topic with their numbers, for a read_committed reader; offsets have gaps."""
    consumer = reader(stack, topic, at_end=False)
    found: Counter[bytes] = Counter()
    try:
        while messages := consumer.consume(50_000, SILENCE_S):
            found.update(message.value() or b"" for message in messages)
    finally:
        consumer.close()
    return found


def load(stack: Stack, schema_id: int, records: int) -> None:
    """Fill the topic by several processes."""
    started = time.monotonic()
    share = records // LOADERS
    feeds = [
        feed(stack, "bulk", schema_id, records=share + (records % LOADERS if n == 0 else 0), seed=n)
        for n in range(LOADERS)
    ]
    sent = sum(fed(process)["sent"] for process in feeds)
    print(f"{sent} readings loaded into {SOURCE} in {time.monotonic() - started:.1f} s", flush=True)


def due(stack: Stack) -> Counter[reference.Converted]:
    """The reference results of the preloaded readings."""
    schema = avro.parse(READING_JSON)
    return reference.conversions(
        counted(stack, SOURCE), lambda value: codec.decode(schema, schema, value[PREFIX_BYTES:])
    )


def check(
    run: Run, found: Counter[reference.Converted], expected: Counter[reference.Converted]
) -> None:
    """End the benchmark unless a side's results are right."""
    if found != expected:
        raise SystemExit(
            f"{run.name}: {(expected - found).total()} results are lost,"
            f" {(found - expected).total()} are wrong"
        )


def measure(
    stack: Stack,
    run: Run,
    schema_id: int,
    expected: Counter[reference.Converted],
    options: argparse.Namespace,
) -> Measured:
    """One side in one round."""
    with running(stack, run, schema_id, options):
        seen = watch(stack, run.targets[0], options.records)
        values = counted(stack, run.targets[0])
    decode = decoder(stack, run)
    found: Counter[reference.Converted] = Counter()
    for value, number in values.items():
        found[reference.converted(decode(value))] += number
    check(run, found, expected)
    remove(stack, run)
    measured = Measured(run.side, rate(seen, 0), rate(seen, options.records // 4))
    print(
        f"{run.side:>13}: {measured.whole / 1e3:6.0f} k/s, warm {measured.warm / 1e3:6.0f} k/s,"
        f" {found.total()} results are right",
        flush=True,
    )
    return measured


def summarise(rounds: Sequence[Mapping[str, Measured]], sides: Sequence[str]) -> None:
    """Print medians with 90 % intervals, and the ratios of Medusa to each other side."""
    print(f"\nmedians of {len(rounds)} rounds [90 % interval], k/s")
    whole, warm = (
        [{side: getattr(m, figure) / 1e3 for side, m in found.items()} for found in rounds]
        for figure in ("whole", "warm")
    )
    for side in sides:
        whole_of, warm_of = (spread([figures[side] for figures in f]) for f in (whole, warm))
        print(f"{side:>13}: {whole_of.text()}, warm {warm_of.text()}")
    for other in against(sides):
        whole_of, warm_of = (ratios(figures, OURS, other) for figures in (whole, warm))
        print(f"ours / {other}: {whole_of.text(2)}, warm {warm_of.text(2)}")


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, 1)
    parser.add_argument("--records", type=int, default=8_000_000)
    options = parser.parse_args(arguments)
    if options.quick:
        options.repeat, options.records = 1, 2_000_000
    with running_stack(node=OURS in options.sides) as stack:
        prepare_peers(stack, options)
        create_topics(stack, SOURCE)
        schema_id = register_reading(stack)
        load(stack, schema_id, options.records)
        expected = due(stack)

        def measured(turn: int) -> Mapping[str, Measured]:
            return {
                run.side: measure(stack, run, schema_id, expected, options)
                for run in runs("stateless", turn, options)
            }

        rounds = completed(options.repeat, measured)
    summarise(rounds, options.sides)
    return 0 if len(rounds) == options.repeat else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
