"""Latency at 1,000 readings a second over 4 partitions, exactly once, compared with plain PySpark.

From the input's CreateTime until a `read_committed` consumer receives the output, on one machine,
so on one clock. With `--job window`: from the reading that closes a one-second window, with parts.

    python -m benchmarks.latency --repeat 3
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from confluent_kafka import Message

from benchmarks.harness import (
    FINISHED_WITHIN_S,
    PARTITIONS,
    PLAIN,
    SINK_HELP,
    SOURCE,
    Stack,
    create_topics,
    fed,
    feed,
    median,
    our_side,
    percentile,
    plain_side,
    reader,
    register_reading,
    running_stack,
    sides,
)
from benchmarks.readings import AVERAGE_JSON, CONVERTED_JSON
from brokers.kafka.admin import KafkaAdmin
from brokers.kafka.reader import TopicReader
from brokers.kafka_interface import FETCH_WAIT_RANGE_MS
from pipeline.ids import TopicName
from pipeline.markers.codec import decode_marker
from schemas import avro, codec, wire

WINDOW_MS = 1_000
QUIET_S = 15.0
"""The output has ended after so long without a record after the feed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One output record: its event time, and the time of its receipt; ms since 1970."""

    event_ms: int
    held_ms: float


@dataclass(frozen=True, slots=True)
class Measured:
    """One side in one round; latencies in ms."""

    side: str
    p50: float
    p99: float
    count: int
    parts: tuple[tuple[str, float], ...] = ()


def event_time(side: str, job: str) -> Callable[[Message], int]:
    """Event time of an output in ms, from the value if Spark's own sink cannot set timestamps."""
    if side != "sink":
        return lambda message: message.timestamp()[1]
    text, column = (CONVERTED_JSON, "at") if job == "stateless" else (AVERAGE_JSON, "window_end")
    schema = avro.parse(text)

    def in_value(message: Message) -> int:
        framed = wire.split(message.value())
        if not isinstance(framed, wire.Framed):
            raise SystemExit("an output is not in the wire format")
        at: datetime = codec.decode(schema, schema, framed.body)[column]
        return round(at.timestamp() * 1000)

    return in_value


def watch(
    stack: Stack,
    topic: str,
    feeding: "subprocess.Popen[str]",
    event_ms: Callable[[Message], int],
    quiet_s: float = QUIET_S,
) -> tuple[list[Seen], int, int]:
    """Read an output during the feed, until it has ended.

    Returns: the records, the start of the measured time, the readings sent since then.
    """
    consumer = reader(stack, topic, at_end=True)
    seen: list[Seen] = []
    last_s = None
    ended_s = None
    try:
        while not _over(last_s, ended_s, quiet_s):
            if ended_s is None and feeding.poll() is not None:
                ended_s = time.monotonic()
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                raise SystemExit(f"the reader of {topic} failed: {message.error()}")
            held_ms = time.time_ns() / 1e6
            seen.append(Seen(event_ms(message), held_ms))
            last_s = time.monotonic()
    finally:
        consumer.close()
    facts = fed(feeding)
    return seen, facts["measured_from_ms"], facts["measured"]


def _over(last_s: float | None, ended_s: float | None, quiet_s: float) -> bool:
    """Whether an output has ended: no record for a while after the feed's end.

    Args:
        last_s: time of the last record, if any: a cold query takes long for its first batch.
        ended_s: time of the feed's end.
        quiet_s: required time without a record.
    """
    if ended_s is None:
        return False
    now_s = time.monotonic()
    if last_s is None:
        return now_s - ended_s > FINISHED_WITHIN_S
    return now_s - max(last_s, ended_s) > quiet_s


def stateless(side: str, seen: Sequence[Seen], from_ms: int, expected: int) -> Measured:
    """Latency of every output of the measured time since its event time, which is CreateTime."""
    latencies = [s.held_ms - s.event_ms for s in seen if s.event_ms >= from_ms]
    if len(latencies) != expected:
        raise SystemExit(f"{side}: {len(latencies)} outputs for {expected} readings")
    return Measured(side, percentile(latencies, 0.5), percentile(latencies, 0.99), len(latencies))


def records(stack: Stack, topic: str) -> list[tuple[int, int, bytes]]:
    """The current records of a topic: partition, timestamp in ms, value."""
    admin = KafkaAdmin(stack.bootstrap_servers, 30.0)
    name = TopicName(topic)
    starts, ends = admin.start_offsets([name])[name], admin.end_offsets([name])[name]
    with TopicReader(stack.bootstrap_servers, 30.0, fetch_wait_ms=FETCH_WAIT_RANGE_MS) as reader:
        reader.assign({name: starts})
        return [
            (record.partition, record.timestamp_ms, record.value or b"")
            for record in reader.read_to({name: ends})
        ]


def first_after(times_ms: Sequence[int], at_ms: float) -> int | None:
    """The first of sorted times at or after `at_ms`."""
    return next((t for t in times_ms if t >= at_ms), None)


def needed_times(stack: Stack, *, every: bool) -> list[list[int]]:
    """Times of the readings that advance event time: per partition, or of all together."""
    by_partition: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for partition, at_ms, _ in records(stack, SOURCE):
        by_partition[partition].append(at_ms)
    ordered = [sorted(times) for times in by_partition]
    return ordered if every else [sorted(t for times in ordered for t in times)]


def windowed(stack: Stack, side: str, seen: Sequence[Seen], from_ms: int) -> Measured:
    """Latency of each window from the reading that closes it to the receipt of its result.

    Medusa waits for a reading after the window's end in every partition, Spark's own watermark
    for one in any of them, so a common measure is printed too: from the window's end.
    """
    times = needed_times(stack, every=side == "ours")
    last = max(max(partition) for partition in times)
    latencies, after_end = [], []
    parts: list[tuple[float, ...]] = []
    log = _lane_log(stack) if side == "ours" else None
    for one in seen:
        if one.event_ms < from_ms or one.event_ms > last - WINDOW_MS:
            continue
        moved = [first_after(partition, one.event_ms + 1) for partition in times]
        needed = max((t for t in moved if t is not None), default=None)
        if needed is None or None in moved:
            continue
        latencies.append(one.held_ms - needed)
        after_end.append(one.held_ms - one.event_ms)
        if log is not None:
            parts.append(log.parts(one, needed))
    if not latencies:
        raise SystemExit(f"{side}: no window came")
    named = [("from the window's end", median(after_end))]
    if parts:
        named += [(name, median([p[n] for p in parts])) for n, name in enumerate(LaneLog.names)]
    return Measured(
        side, percentile(latencies, 0.5), percentile(latencies, 0.99), len(latencies), tuple(named)
    )


@dataclass(frozen=True, slots=True)
class LaneLog:
    """Write times of a lane's batches: (event time reached, ms), in order."""

    progressed: tuple[tuple[int, int], ...]
    evicted: tuple[tuple[int, int], ...]
    names = (
        "batch with that reading written",
        "batch that closes the window written",
        "held by the reader",
    )

    def parts(self, seen: Seen, needed_ms: float) -> tuple[float, ...]:
        """Duration of each step for one window, in ms."""
        reached = [
            next((at for to, at in log if to >= seen.event_ms - 1), seen.held_ms)
            for log in (self.progressed, self.evicted)
        ]
        times = [needed_ms, *reached, seen.held_ms]
        return tuple(later - earlier for earlier, later in pairwise(times))


def _lane_log(stack: Stack) -> LaneLog:
    """Read the commit markers of the window's fragment."""
    topic = "local.bench_window.averages.markers"
    markers = [decode_marker(value, topic) for _, _, value in records(stack, topic)]
    return LaneLog(
        progressed=tuple(
            (min(m.progress.values()), m.written_at_ms)
            for m in markers
            if len(m.progress) == PARTITIONS
        ),
        evicted=tuple((m.eviction_ms, m.written_at_ms) for m in markers if m.eviction_ms),
    )


def run(
    stack: Stack, job: str, schema_id: int, turn: int, options: argparse.Namespace
) -> list[Measured]:
    """One round, side by side."""
    ours = "bench-converted" if job == "stateless" else "bench-averages"
    found = []
    for side in sides(with_sink=options.with_sink):
        running: AbstractContextManager[object]
        if side in PLAIN:
            topic = f"{ours}-{side}-{turn}"
            create_topics(stack, topic)
            running = plain_side(stack, side, job, topic)
        else:
            topic = ours
            running = our_side(stack, f"{job}.yaml", f"bench_{job}")
        with running:
            feeding = feed(
                stack,
                "steady",
                schema_id,
                rate=options.rate,
                warm_up=options.warm_up,
                seconds=options.seconds,
            )
            seen, from_ms, expected = watch(stack, topic, feeding, event_time(side, job))
        if job == "stateless":
            found.append(stateless(side, seen, from_ms, expected))
        else:
            found.append(windowed(stack, side, seen, from_ms))
        show(found[-1])
    return found


def show(measured: Measured) -> None:
    """Print one side's latencies and parts."""
    print(
        f"{measured.side:>6}: p50 {measured.p50:7.1f} ms  p99 {measured.p99:7.1f} ms"
        f"  ({measured.count} outputs)",
        flush=True,
    )
    for name, value in measured.parts:
        print(f"        {value:7.1f} ms  {name}", flush=True)


def summarise(job: str, found: Sequence[Measured]) -> None:
    """Print medians over the rounds, and the ratios of Medusa to each other side."""
    taking_part = tuple(dict.fromkeys(m.side for m in found))
    print(f"\n{job}, medians of {len(found) // len(taking_part)} rounds")
    figures = {
        side: (
            median([m.p50 for m in found if m.side == side]),
            median([m.p99 for m in found if m.side == side]),
        )
        for side in taking_part
    }
    for side, (p50, p99) in figures.items():
        print(f"{side:>6}: p50 {p50:7.1f} ms  p99 {p99:7.1f} ms")
    for side in taking_part[:-1]:
        ratios = [figures["ours"][n] / figures[side][n] for n in (0, 1)]
        print(f"ours / {side}: p50 {ratios[0]:.2f}, p99 {ratios[1]:.2f}")


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=("stateless", "window"), default="stateless")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (%(default)s)")
    parser.add_argument("--with-sink", action="store_true", help=SINK_HELP)
    parser.add_argument("--rate", type=float, default=1_000, help="readings a second")
    parser.add_argument("--warm-up", type=float, default=20, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=30, help="seconds measured")
    options = parser.parse_args(arguments)
    found: list[Measured] = []
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        schema_id = register_reading(stack)
        for turn in range(options.repeat):
            found += run(stack, options.job, schema_id, turn, options)
    summarise(options.job, found)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
