"""The pause when a running producer switches to a newer, compatible schema.

    python -m benchmarks.schema_change --repeat 3

A stateless network reads 1,000 readings a second; repeatedly the producer switches to a schema with
one more field. Printed are the latency before, the maximum while the lane fetches the new schema,
and whether all records were published.
"""

import argparse
import json
import sys
import threading
import time

from benchmarks.feed import producer
from benchmarks.harness import (
    PARTITIONS,
    SOURCE,
    Stack,
    create_topics,
    median,
    our_side,
    percentile,
    reader,
    register_reading,
    running_stack,
)
from benchmarks.readings import READING_JSON, Readings
from schemas.client import RegistryClient

RATE = 1_000
STEP_S = 0.01
WARM_UP_S = 20.0
BETWEEN_S = 12.0
QUIET_S = 10.0
ONE_MORE = b"\x02x"
"""The Avro encoding of one more string field."""


class Switching:
    """Producer of readings on its own thread, with a switchable schema."""

    def __init__(self, stack: Stack, first: Readings) -> None:
        self._current = first, b""
        self.sent = 0
        self._producer = producer(stack.bootstrap_servers, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self._thread.start()

    def switch(self, readings: Readings, suffix: bytes) -> int:
        """Switch to other readings; returns the time (ms)."""
        self._current = readings, suffix
        return _now_ms()

    def stop(self) -> None:
        """Stop, and wait for all deliveries."""
        self._stop.set()
        self._thread.join(30)
        if self._producer.flush(60):
            raise SystemExit("the readings could not be delivered")

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(STEP_S):
            for _ in range(int((time.monotonic() - began) * RATE) - self.sent):
                at_ms = _now_ms()
                readings, suffix = self._current
                key, body = readings.make(at_ms)
                partition = self.sent % PARTITIONS
                self._producer.produce(SOURCE, body + suffix, key, partition, timestamp=at_ms)
                self.sent += 1
            self._producer.poll(0)


class Latencies:
    """Reader of the output on its own thread: (event time, latency), both in ms."""

    def __init__(self, stack: Stack, topic: str) -> None:
        self.seen: list[tuple[int, float]] = []
        self._consumer = reader(stack, topic, at_end=True)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def between(self, from_ms: int, until_ms: int) -> list[float]:
        """The latencies of records in an interval of event time."""
        return [latency for at, latency in self.seen if from_ms <= at < until_ms]

    def stop(self) -> None:
        """Stop reading."""
        self._stop.set()
        self._thread.join(30)
        self._consumer.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                at_ms = message.timestamp()[1]
                self.seen.append((at_ms, time.time_ns() / 1e6 - at_ms))


def newer(stack: Stack, number: int) -> Readings:
    """Register a schema with one more field; returns its readings."""
    schema = json.loads(READING_JSON)
    schema["fields"].append({"name": f"more_{number}", "type": "string", "default": ""})
    registry = RegistryClient(stack.registry_url)
    try:
        found = registry.register(f"{SOURCE}-value", json.dumps(schema))
    finally:
        registry.close()
    return Readings(int(found), number)


def main(arguments: list[str]) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schema_change", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--repeat", type=int, default=3, help="switches (%(default)s)")
    repeat = parser.parse_args(arguments).repeat
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        first = Readings(register_reading(stack), 1)
        with our_side(stack, "stateless.yaml", "bench_stateless"):
            latencies = Latencies(stack, "bench-converted")
            feed = Switching(stack, first)
            time.sleep(WARM_UP_S)
            longest = []
            for number in range(repeat):
                began_ms = _now_ms()
                time.sleep(BETWEEN_S)
                switched_ms = feed.switch(newer(stack, number), ONE_MORE)
                time.sleep(BETWEEN_S)
                before = latencies.between(began_ms, switched_ms)
                after = latencies.between(switched_ms, switched_ms + int(BETWEEN_S * 500))
                longest.append(max(after))
                print(
                    f"switch {number + 1}: before p50 {percentile(before, 0.5):.0f} ms, "
                    f"longest {max(before):.0f} ms; with the switch longest {max(after):.0f} ms",
                    flush=True,
                )
            feed.stop()
            time.sleep(QUIET_S)
            latencies.stop()
        print(f"median of the longest: {median(longest):.0f} ms (wanted: a pause of 2,000 at most)")
        print(f"{feed.sent} readings sent, {len(latencies.seen)} results")
    return 0 if feed.sent == len(latencies.seen) else 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
