"""Throughput of boxes whose rows wait for event time: a left join and a deduplication.

Preloaded readings whose event time rises, 1,000 a second of it; 10,000 sensors. Both sides bear
lateness of 10 s. The left join is the same on both sides. Plain PySpark has no deduplication that
is exact: its `dropDuplicatesWithinWatermark` keeps what comes first and sends it at once. The rate
counts readings, from the first visible output to the last.

    python -m benchmarks.waiting --records 1000000
"""

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager

from benchmarks.harness import (
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
    stable_end,
)

JOBS = ("outer_join", "deduplicate")
STANDS_STILL_S = 15.0
STARTED_WITHIN_S = 120.0


def watch(stack: Stack, topic: str) -> list[tuple[float, int]]:
    """How many outputs are visible over time, until no more come: (seconds, count)."""
    seen: list[tuple[float, int]] = []
    began = time.monotonic()
    consumer = reader(stack, topic, at_end=True)
    try:
        while True:
            visible, now = stable_end(consumer, topic), time.monotonic()
            if visible > (seen[-1][1] if seen else 0):
                seen.append((now, visible))
            elif seen and now - seen[-1][0] > STANDS_STILL_S:
                return seen
            elif not seen and now - began > STARTED_WITHIN_S:
                raise SystemExit(f"nothing came to {topic}")
            time.sleep(0.05)
    finally:
        consumer.close()


def rate(seen: Sequence[tuple[float, int]], records: int) -> float:
    """Readings a second behind the outputs between the first point and the last."""
    (first_s, first), (last_s, last) = seen[0], seen[-1]
    if last_s <= first_s:
        raise SystemExit("too few batches to measure a rate: use more records")
    return records * (last - first) / last / (last_s - first_s)


def run(stack: Stack, job: str, turn: int, records: int) -> dict[str, float]:
    """One round of a job, side by side; ours starts from nothing each time."""
    found = {}
    for side in ("plain", "ours"):
        running: AbstractContextManager[object]
        if side == "plain":
            topic = f"bench-{job}-plain-{turn}"
            create_topics(stack, topic)
            running = plain_side(stack, side, job, topic)
        else:
            topic = f"bench-{job.replace('_', '-')}"
            running = our_side(stack, f"{job}.yaml", f"bench_{job}")
        with running:
            seen = watch(stack, topic)
        found[side] = rate(seen, records)
        print(f"{job} {side:>6}: {found[side] / 1e3:6.0f} k/s, {seen[-1][1]} outputs", flush=True)
    stack.medusa("destroy", f"bench_{job}", "--yes")
    return found


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--jobs", choices=JOBS, nargs="+", default=JOBS)
    options = parser.parse_args(arguments)
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        schema = register_reading(stack)
        fed(feed(stack, "rising", schema, records=options.records, rate=1_000))
        for job in options.jobs:
            rounds = [run(stack, job, turn, options.records) for turn in range(options.repeat)]
            plain, ours = (median([found[side] for found in rounds]) for side in ("plain", "ours"))
            print(f"{job}: ours / plain {ours / plain:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
