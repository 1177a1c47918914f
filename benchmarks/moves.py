"""Pause of a move of a fragment between two nodes, while 1,000 readings a second flow.

    python -m benchmarks.moves                        # stateless, 20 moves
    python -m benchmarks.moves --job window
    python -m benchmarks.moves --job join --keys 200000
    python -m benchmarks.moves --job window --upgrade --moves 5

The pause is the longest time without a result from the request of the move until five seconds after
it is done, less the usual time between two deliveries of results. `whole` is the time from the
request until the target runs the fragment: mostly that in which the follower builds the state. The
join keeps a row of each key on both sides for an hour; `--keys` readings are sent before the first
move, and the size of its state is printed. With `--upgrade` each move is followed by an upgrade of
the second node, as `docs/upgrades.md` describes it: drained, stopped, started, no longer drained.
Its pause is measured alike.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

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


class SecondNode:
    """Another node, with checkpoints of its own; use it in `with`."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    def start(self) -> None:
        """Start it, and wait until it is up."""
        data = self._stack.folder / SECOND
        data.mkdir(exist_ok=True)
        ready = data / "ready"
        ready.unlink(missing_ok=True)
        command = medusa_command("node", "start", f"--ready-file={ready}", f"--set=node={SECOND}")
        command += [f"--set=data={data}", f"--set=checkpoints={data / 'checkpoints'}"]
        with (data / "out").open("a") as out:
            self._process = subprocess.Popen(
                command, cwd=self._stack.folder, env=environment(), stdout=out, stderr=out
            )
        wait_for(ready.exists, STARTED_WITHIN_S, "the second node")

    def stop(self) -> None:
        """Stop it as a service manager does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(90)


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


def measured(arrivals: Arrivals, began_s: float, ended_s: float, whole_ms: float) -> Measured:
    """The pause of what has just ended."""
    time.sleep(AFTER_S)
    usual_s = median(arrivals.gaps_s(began_s - AFTER_S, began_s))
    longest_s = max(arrivals.gaps_s(began_s, ended_s + AFTER_S))
    return Measured(1_000 * (longest_s - usual_s), 1_000 * usual_s, whole_ms)


def moved(stack: Stack, fragment: str, nodes: tuple[str, str], arrivals: Arrivals) -> Measured:
    """Move a fragment to the other node, and measure."""
    at = owner(stack, fragment)
    (to,) = {*nodes} - {at}
    began_s = time.monotonic()
    done = json.loads(stack.medusa("move", fragment, "--to", to, "-o", "json"))
    ended_s = time.monotonic()
    return measured(arrivals, began_s, ended_s, float(done["after_ms"]))


def upgraded(stack: Stack, node: SecondNode, arrivals: Arrivals) -> Measured:
    """Upgrade the second node, and measure."""
    began_s = time.monotonic()
    stack.medusa("node", "drain", SECOND)
    node.stop()
    node.start()
    stack.medusa("node", "undrain", SECOND)
    ended_s = time.monotonic()
    return measured(arrivals, began_s, ended_s, 1_000 * (ended_s - began_s))


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moves", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--job", choices=tuple(JOBS), default="stateless", help="(%(default)s)")
    add("--moves", type=int, default=20, help="(%(default)s)")
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--keys", type=int, default=0, help="readings sent before the first move")
    add("--upgrade", action="store_true", help="upgrade the second node after each move")
    add("--warm-up", type=float, default=40.0, help="seconds before the first move (%(default)s)")
    options = parser.parse_args(arguments)
    os.environ.setdefault("MEDUSA_SPARK_MASTER", "local[2]")
    with running_stack() as stack:
        (stack.folder / "join.yaml").write_text(JOIN, encoding="utf-8")
        with SecondNode(stack) as node:
            _run(stack, node, options)
    return 0


def _run(stack: Stack, node: SecondNode, options: argparse.Namespace) -> None:
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
            _measure(stack, node, f"{network}.{fragment}", arrivals, options)
        finally:
            arrivals.stop.set()
            thread.join(10)
            arrivals.consumer.close()
            feeding.terminate()
            feeding.wait(30)


def _measure(
    stack: Stack,
    node: SecondNode,
    fragment: str,
    arrivals: Arrivals,
    options: argparse.Namespace,
) -> None:
    nodes = json.loads(stack.medusa("node", "list", "-o", "json"))["nodes"]
    first, second = sorted(one["node"] for one in nodes)
    found: list[Measured] = []
    upgrades: list[Measured] = []
    for number in range(options.moves):
        found.append(moved(stack, fragment, (first, second), arrivals))
        _print(f"{number + 1:3}", found[-1])
        if options.upgrade and owner(stack, fragment) == SECOND:
            upgrades.append(upgraded(stack, node, arrivals))
            _print("upgrade", upgrades[-1])
    size = state_bytes(stack.folder) / 2**20
    _print_all(f"{options.job}, {len(found)} moves", found)
    if upgrades:
        _print_all(f"{options.job}, {len(upgrades)} upgrades", upgrades)
    print(f"state files of all checkpoints {size:.0f} MiB")


def _print(what: str, one: Measured) -> None:
    print(
        f"{what}: pause {one.pause:6.0f} ms, usual {one.usual:6.0f} ms, whole {one.whole:7.0f} ms",
        flush=True,
    )


def _print_all(what: str, found: list[Measured]) -> None:
    pauses = [one.pause for one in found]
    print(
        f"{what}: pause median {median(pauses):.0f} ms, worst {max(pauses):.0f} ms; whole median "
        f"{median([one.whole for one in found]):.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
