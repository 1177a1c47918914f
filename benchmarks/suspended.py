"""Latency while a server that a running lane does not need is suspended (SIGSTOP).

    python -m benchmarks.suspended                   # ZooKeeper, then the registry, a minute each

A stateless network at 1,000 readings a second. Printed are, for a time before, for each suspended
server and for the time after it, the latency of the results and the longest time without one. The
schema registry of the embedded stack is in the process of `medusa up`, which supervises the others.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer

from benchmarks.harness import (
    SOURCE,
    Stack,
    create_topics,
    feed,
    our_side,
    percentile,
    reader,
    register_reading,
    running_stack,
)
from benchmarks.processes import zookeeper_of

TARGET = "bench-converted"
SERVERS: dict[str, Callable[[int], int]] = {"ZooKeeper": zookeeper_of, "registry": lambda up: up}
"""Server → its process, from that of `medusa up`."""


@contextmanager
def suspended(pid: int) -> Iterator[None]:
    """A suspended process, for the duration of the block."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def show(name: str, consumer: Consumer, seconds: float) -> None:
    """Read results for so many seconds; print their latency, and the longest time without one."""
    latencies: list[float] = []
    began = last = time.monotonic()
    longest_s = 0.0
    while (now := time.monotonic()) < began + seconds:
        for message in consumer.consume(1_000, 0.1):
            if message.error() is not None:
                raise SystemExit(f"the reader failed: {message.error()}")
            latencies.append(time.time_ns() / 1e6 - message.timestamp()[1])
            now = time.monotonic()
            longest_s, last = max(longest_s, now - last), now
    longest_s = max(longest_s, now - last)
    found = (percentile(latencies, share) for share in (0.5, 0.99)) if latencies else (0.0, 0.0)
    p50_ms, p99_ms = found
    print(
        f"{name:28}{len(latencies):10}{p50_ms:9.0f}{p99_ms:9.0f}{1_000 * longest_s:12.0f}",
        flush=True,
    )


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suspended", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--servers", nargs="+", default=tuple(SERVERS), choices=tuple(SERVERS))
    add("--rate", type=float, default=1_000.0, help="readings a second (%(default)s)")
    add("--warm-up", type=float, default=60.0, help="seconds before (%(default)s)")
    add("--seconds", type=float, default=60.0, help="of each suspension (%(default)s)")
    options = parser.parse_args(arguments)
    print(f"{'':28}{'results':>10}{'p50 ms':>9}{'p99 ms':>9}{'longest ms':>12}", flush=True)
    with running_stack() as stack:
        _run(stack, options)
    return 0


def _run(stack: Stack, options: argparse.Namespace) -> None:
    create_topics(stack, SOURCE, TARGET)
    schema_id = register_reading(stack)
    with our_side(stack, "stateless.yaml", "bench_stateless"):
        feeding = feed(stack, "steady", schema_id, rate=options.rate, warm_up=0, seconds=86_400)
        consumer = reader(stack, TARGET, at_end=True)
        try:
            show("warm-up", consumer, options.warm_up)
            show("before", consumer, options.seconds)
            for name in options.servers:
                with suspended(SERVERS[name](stack.pid)):
                    show(f"{name} suspended", consumer, options.seconds)
                show(f"{name} back", consumer, options.seconds)
        finally:
            consumer.close()
            feeding.terminate()
            feeding.wait(30)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
