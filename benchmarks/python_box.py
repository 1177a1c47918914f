"""Cost of a Python box per row, compared with plain PySpark's `mapInArrow` of the same function.

The job of `throughput.py`, with its map written in Python; and Medusa's once more with the map
itself, so that the difference is the cost of the transfer between Java and Python.

    python -m benchmarks.python_box --records 4000000
"""

import argparse
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.harness import (
    SOURCE,
    Stack,
    create_topics,
    median,
    our_side,
    plain_side,
    register_reading,
    running_stack,
)
from benchmarks.throughput import counted, load, rate, watch

NS = 1e9


@dataclass(frozen=True, slots=True)
class Side:
    """A side: Medusa's network, or none for the plain script; and its output."""

    network: str
    document: str
    topic: str


SIDES: Mapping[str, Side] = {
    "plain": Side("", "", "bench-python-plain"),
    "ours": Side("bench_python", "python.yaml", "bench-python"),
    "map": Side("bench_stateless", "stateless.yaml", "bench-converted"),
}


def measured(stack: Stack, side: Side, turn: int, options: argparse.Namespace) -> float:
    """Records per second of one side, without the first quarter."""
    running: AbstractContextManager[object]
    topic = side.topic
    if side.network:
        running = our_side(stack, side.document, side.network)
    else:
        topic = f"{side.topic}-{turn}"
        create_topics(stack, topic)
        running = plain_side(
            stack, "plain", "python", (topic,), batch_records=options.batch_records
        )
    with running:
        seen = watch(stack, topic, options.records)
    came = counted(stack, topic).total()
    if came != options.records:
        raise SystemExit(f"{topic}: {came} outputs for {options.records} readings")
    if side.network:
        stack.medusa("destroy", side.network, "--yes")
    return rate(seen, options.records // 4)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--batch-records", type=int, default=400_000)
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {name: [] for name in SIDES}
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        load(stack, register_reading(stack), options.records)
        for turn in range(options.repeat):
            for name, side in SIDES.items():
                found[name].append(measured(stack, side, turn, options))
                print(f"{name:>6}: {found[name][-1] / 1e3:6.0f} k/s", flush=True)
    print(f"\nmedians of {options.repeat} rounds, without the first quarter")
    rates = {name: median(values) for name, values in found.items()}
    for name, per_second in rates.items():
        print(f"{name:>6}: {per_second / 1e3:6.0f} k/s, {NS / per_second:6.0f} ns a row")
    print(f"ours / plain: {rates['ours'] / rates['plain']:.2f}")
    print(f"a Python box beside a map: {NS / rates['ours'] - NS / rates['map']:.0f} ns a row more")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
