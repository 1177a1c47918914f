"""How many live fragments one node carries: each emits one result a second.

    python -m benchmarks.density                     # 5, 10, 20, 40 … fragments, until p99 > 2 s
    python -m benchmarks.density --steps 10 100      # these numbers alone

Each fragment sums all readings of a second, in windows of one second without a group. Printed are,
for each number of fragments, the latency of the results from the end of their window, memory and
threads of the node and of Spark's Java process, and their CPU time.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from benchmarks.harness import (
    SOURCE,
    Stack,
    all_run,
    create_topics,
    feed,
    percentile,
    register_reading,
    running_stack,
    wait_for,
)
from benchmarks.processes import java_of, node_of, own_s, threads_of
from pipeline.examples.memory import resident_bytes

NETWORK = "bench_density"
STARTED_WITHIN_S = 600.0
MB = 1e6
HEADER = (
    f"{'fragments':>9}{'results/s':>10}{'p50 ms':>8}{'p99 ms':>8}{'node MB':>9}{'Java MB':>9}"
    f"{'node thr.':>10}{'Java thr.':>10}{'CPU %':>7}"
)


@dataclass(frozen=True, slots=True)
class Step:
    """Measurement of one number of fragments."""

    fragments: int
    results_s: float
    p50_ms: float
    p99_ms: float
    node_mb: float
    java_mb: float
    node_threads: int
    java_threads: int
    cpu_percent: float

    def line(self) -> str:
        """One line of the table."""
        return (
            f"{self.fragments:9}{self.results_s:10.1f}{self.p50_ms:8.0f}{self.p99_ms:8.0f}"
            f"{self.node_mb:9.0f}{self.java_mb:9.0f}{self.node_threads:10}{self.java_threads:10}"
            f"{self.cpu_percent:7.0f}"
        )


def document(fragments: int) -> str:
    """A network with so many equal fragments, in JSON, which is YAML."""
    stream = {
        "topic": SOURCE,
        "schema": "schemas/reading.avsc",
        "event_time": "at",
        "lateness": "0s",
        "start": "latest",
    }
    box = {"aggregate": "readings", "window": "1s", "compute": {"n": "count(*)"}}
    names = [f"sum{number}" for number in range(fragments)]
    network = {
        "network": NETWORK,
        "streams": {"readings": stream},
        "boxes": dict.fromkeys(names, box),
        "outputs": {name: {"topic": f"{NETWORK}-{name}", "partitions": 1} for name in names},
    }
    return json.dumps(network)


def measure(stack: Stack, fragments: int, options: argparse.Namespace) -> Step:
    """Deploy so many fragments, wait until they run, and measure."""
    (stack.folder / "density.yaml").write_text(document(fragments), encoding="utf-8")
    stack.medusa("deploy", "-f", "density.yaml")
    wait_for(lambda: all_run(stack, NETWORK), STARTED_WITHIN_S, f"{fragments} fragments")
    time.sleep(options.warm_up)
    java, node = java_of(stack.pid), node_of(stack.pid)
    before_s = own_s(java) + own_s(node)
    latencies = _latencies(stack, fragments, options.seconds)
    cpu_s = own_s(java) + own_s(node) - before_s
    return Step(
        fragments=fragments,
        results_s=len(latencies) / options.seconds,
        p50_ms=percentile(latencies, 0.5),
        p99_ms=percentile(latencies, 0.99),
        node_mb=(resident_bytes(node) or 0) / MB - (resident_bytes(java) or 0) / MB,
        java_mb=(resident_bytes(java) or 0) / MB,
        node_threads=threads_of(node),
        java_threads=threads_of(java),
        cpu_percent=100 * cpu_s / options.seconds,
    )


def _latencies(stack: Stack, fragments: int, seconds: float) -> Sequence[float]:
    """Latency of each result that comes in so many seconds, from the end of its window."""
    consumer = Consumer(
        {
            "bootstrap.servers": stack.bootstrap_servers,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    places = [TopicPartition(f"{NETWORK}-sum{n}", 0) for n in range(fragments)]
    for place in places:
        place.offset = consumer.get_watermark_offsets(place, 30)[1]
    consumer.assign(places)
    found: list[float] = []
    ends_at = time.monotonic() + seconds
    try:
        while time.monotonic() < ends_at:
            for message in consumer.consume(100, 0.1):
                if message.error() is not None:
                    raise SystemExit(f"the reader failed: {message.error()}")
                found.append(time.time_ns() / 1e6 - message.timestamp()[1])
    finally:
        consumer.close()
    if not found:
        raise SystemExit(f"{fragments} fragments: no result came in {seconds:.0f} s")
    return found


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.density", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--steps", type=int, nargs="+", help="numbers of fragments, in this order")
    add("--most-ms", type=float, default=2_000.0, help="p99 that ends the run (%(default)s)")
    add("--rate", type=float, default=100.0, help="readings a second (%(default)s)")
    add("--warm-up", type=float, default=60.0, help="seconds before each (%(default)s)")
    add("--seconds", type=float, default=60.0, help="seconds measured (%(default)s)")
    options = parser.parse_args(arguments)
    steps = options.steps or [5 * 2**n for n in range(7)]
    print(HEADER, flush=True)
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        schema_id = register_reading(stack)
        feeding = feed(stack, "steady", schema_id, rate=options.rate, warm_up=0, seconds=86_400)
        try:
            for fragments in steps:
                step = measure(stack, fragments, options)
                print(step.line(), flush=True)
                if options.steps is None and step.p99_ms > options.most_ms:
                    break
        finally:
            feeding.terminate()
            feeding.wait(30)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
