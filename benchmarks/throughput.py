"""Throughput on preloaded Avro readings of about 110 bytes, exactly once, against plain PySpark.

The readings are in the topic before either side starts. The rate counts records visible to a
`read_committed` reader; `warm` excludes the first quarter, in which the JVM compiles.

    python -m benchmarks.throughput --records 8000000
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.harness import (
    PLAIN,
    SINK_HELP,
    SOURCE,
    Stack,
    create_topics,
    fed,
    feed,
    median,
    our_side,
    plain_side,
    reader,
    register_reading,
    running_stack,
    sides,
    stable_end,
)

STALLED_AFTER_S = 240.0
LOADERS = 2


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


def count(stack: Stack, topic: str) -> int:
    """Number of records of a read_committed reader; offsets have gaps."""
    consumer = reader(stack, topic, at_end=False)
    found = 0
    try:
        while messages := consumer.consume(50_000, 5.0):
            found += len(messages)
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


def run(stack: Stack, turn: int, options: argparse.Namespace) -> list[Measured]:
    """One round of all sides; Medusa's network is new in each."""
    found = []
    for side in sides(with_sink=options.with_sink):
        running: AbstractContextManager[object]
        if side in PLAIN:
            topic = f"bench-converted-{side}-{turn}"
            create_topics(stack, topic)
            running = plain_side(stack, side, "stateless", topic, options.batch_records)
        else:
            topic = "bench-converted"
            running = our_side(stack, "stateless.yaml", "bench_stateless")
        with running:
            seen = watch(stack, topic, options.records)
        came = count(stack, topic)
        if came != options.records:
            raise SystemExit(f"{side}: {came} outputs for {options.records} readings")
        measured = Measured(side, rate(seen, 0), rate(seen, options.records // 4))
        print(
            f"{side:>6}: {measured.whole / 1e3:6.0f} k/s, warm {measured.warm / 1e3:6.0f} k/s,"
            f" {came} outputs counted",
            flush=True,
        )
        found.append(measured)
    stack.medusa("destroy", "bench_stateless", "--yes")
    return found


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=8_000_000)
    parser.add_argument("--batch-records", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--with-sink", action="store_true", help=SINK_HELP)
    options = parser.parse_args(arguments)
    found: list[Measured] = []
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        load(stack, register_reading(stack), options.records)
        for turn in range(options.repeat):
            found += run(stack, turn, options)
    taking_part = sides(with_sink=options.with_sink)
    print(f"\nmedians of {options.repeat} rounds")
    whole, warm = (
        {
            side: median([getattr(m, figure) for m in found if m.side == side])
            for side in taking_part
        }
        for figure in ("whole", "warm")
    )
    for side in taking_part:
        print(f"{side:>6}: {whole[side] / 1e3:6.0f} k/s, warm {warm[side] / 1e3:6.0f} k/s")
    for side in taking_part[:-1]:
        ratios = whole["ours"] / whole[side], warm["ours"] / warm[side]
        print(f"ours / {side}: {ratios[0]:.2f}, warm {ratios[1]:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
