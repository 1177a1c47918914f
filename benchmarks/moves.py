"""Pause of a move of a fragment between two nodes, while 1,000 readings a second flow.

    python -m benchmarks.moves                        # stateless, 20 moves
    python -m benchmarks.moves --job window
    python -m benchmarks.moves --job join --keys 200000

The pause is the longest time without a result from the request of the move until five seconds after
it is done, less the usual time between two deliveries of results. `whole` is the time from the
request until the target runs the fragment: mostly that in which the follower builds the state. The
join keeps a row of each key on both sides for an hour; `--keys` readings are sent before the first
move, and the size of its state is printed.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from confluent_kafka import Consumer

from benchmarks.harness import (
    SOURCE,
    STARTED_WITHIN_S,
    Stack,
    create_topics,
    environment,
    fed,
    feed,
    median,
    medusa_command,
    our_side,
    reader,
    register_reading,
    running_stack,
    wait_for,
)
from benchmarks.state import state_bytes

SECOND = "node2"
AFTER_S = 5.0
TOGETHER_S = 0.005
"""Results that arrive closer to each other are one delivery."""
JOIN = """
network: bench_join

streams:
  readings:
    topic: bench-readings
    schema: schemas/reading.avsc
    event_time: at
    lateness: 0s
    idle_after: 10s
    start: earliest

boxes:
  warm: {filter: readings, where: celsius > -90}
  pairs:
    join: {left: readings, right: warm, on: [sensor, at], within: 1h}
    select: {sensor: sensor, celsius: left.celsius, at: left.at}

outputs:
  pairs: {topic: bench-pairs, partitions: 4}
"""
JOBS = {
    "stateless": ("bench_stateless", "converted", "bench-converted"),
    "window": ("bench_window", "averages", "bench-averages"),
    "join": ("bench_join", "pairs", "bench-pairs"),
}
"""Job → its network, fragment and output topic."""


@dataclass(slots=True)
class Arrivals:
    """Times at which results arrive, read by a thread of its own."""

    consumer: Consumer
    times_s: list[float] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Read until the stop."""
        while not self.stop.is_set():
            if any(one.error() is None for one in self.consumer.consume(1_000, 0.05)):
                self.times_s.append(time.monotonic())

    def gaps_s(self, begin_s: float, end_s: float) -> list[float]:
        """The times between deliveries, from the last one before `begin_s` on."""
        before = [at for at in self.times_s if at < begin_s][-1:]
        found = [*before, *(at for at in self.times_s if begin_s <= at <= end_s), end_s]
        return [b - a for a, b in pairwise(found) if b - a > TOGETHER_S]


@contextmanager
def second_node(stack: Stack) -> Iterator[None]:
    """Another node, with checkpoints of its own."""
    ready = stack.folder / "second.ready"
    data = stack.folder / SECOND
    data.mkdir()
    command = medusa_command("node", "start", f"--ready-file={ready}", f"--set=node={SECOND}")
    command += [f"--set=data={data}", f"--set=checkpoints={data / 'checkpoints'}"]
    with (data / "out").open("w") as out:
        process = subprocess.Popen(
            command, cwd=stack.folder, env=environment(), stdout=out, stderr=out
        )
    try:
        wait_for(ready.exists, STARTED_WITHIN_S, "the second node")
        yield
    finally:
        process.terminate()
        process.wait(90)


def owner(stack: Stack, fragment: str) -> str:
    """The node that runs a fragment."""
    nodes = json.loads(stack.medusa("node", "list", "-o", "json"))["nodes"]
    return str(next(one["node"] for one in nodes if fragment in one["fragments"]))


@dataclass(frozen=True, slots=True)
class Measured:
    """One move; all in ms."""

    pause: float
    usual: float
    whole: float


def moved(stack: Stack, fragment: str, nodes: tuple[str, str], arrivals: Arrivals) -> Measured:
    """Move a fragment to the other node, and measure."""
    at = owner(stack, fragment)
    (to,) = {*nodes} - {at}
    began_s = time.monotonic()
    done = json.loads(stack.medusa("move", fragment, "--to", to, "-o", "json"))
    ended_s = time.monotonic()
    time.sleep(AFTER_S)
    usual_s = median(arrivals.gaps_s(began_s - AFTER_S, began_s))
    longest_s = max(arrivals.gaps_s(began_s, ended_s + AFTER_S))
    return Measured(1_000 * (longest_s - usual_s), 1_000 * usual_s, float(done["after_ms"]))


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--job", choices=tuple(JOBS), default="stateless", help="(%(default)s)")
    add("--moves", type=int, default=20, help="(%(default)s)")
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--keys", type=int, default=0, help="readings sent before the first move")
    add("--warm-up", type=float, default=40.0, help="seconds before the first move (%(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("MEDUSA_SPARK_MASTER", "local[2]")
    with running_stack() as stack:
        (stack.folder / "join.yaml").write_text(JOIN, encoding="utf-8")
        with second_node(stack):
            _run(stack, options)
    return 0


def _run(stack: Stack, options: argparse.Namespace) -> None:
    network, fragment, topic = JOBS[options.job]
    create_topics(stack, SOURCE, topic)
    schema_id = register_reading(stack)
    rates = {"rate": options.rate, "warm_up": 0}
    if options.keys:
        fed(feed(stack, "steady", schema_id, rate=20_000, warm_up=0, seconds=options.keys / 20_000))
    with our_side(stack, f"{options.job}.yaml", network):
        feeding = feed(stack, "steady", schema_id, **rates, seconds=86_400)
        arrivals = Arrivals(reader(stack, topic, at_end=True))
        thread = threading.Thread(target=arrivals.run, daemon=True)
        thread.start()
        try:
            time.sleep(options.warm_up)
            _measure(stack, f"{network}.{fragment}", arrivals, options)
        finally:
            arrivals.stop.set()
            thread.join(10)
            arrivals.consumer.close()
            feeding.terminate()
            feeding.wait(30)


def _measure(stack: Stack, fragment: str, arrivals: Arrivals, options: argparse.Namespace) -> None:
    nodes = json.loads(stack.medusa("node", "list", "-o", "json"))["nodes"]
    first, second = sorted(one["node"] for one in nodes)
    found: list[Measured] = []
    for number in range(options.moves):
        found.append(moved(stack, fragment, (first, second), arrivals))
        one = found[-1]
        print(
            f"{number + 1:3}: pause {one.pause:6.0f} ms, usual {one.usual:6.0f} ms, "
            f"whole {one.whole:7.0f} ms",
            flush=True,
        )
    pauses = [one.pause for one in found]
    size = state_bytes(stack.folder) / 2**20
    print(
        f"{options.job}, {len(found)} moves: pause median {median(pauses):.0f} ms, worst "
        f"{max(pauses):.0f} ms; whole median {median([one.whole for one in found]):.0f} ms; "
        f"state files of all checkpoints {size:.0f} MiB"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
