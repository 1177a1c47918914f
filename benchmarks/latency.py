"""Latency at 1,000 readings a second over 4 partitions, exactly once, beside other sides.

From the input's CreateTime until a `read_committed` consumer receives the output, on one machine,
so on one clock. With `--job window`: from the end of a one-second window; `--job chain`: of each of
three windows in a row. Results are compared with a reference first; only right ones are timed.

    python -m benchmarks.latency --repeat 3
    python -m benchmarks.latency --job window --sides plain kafka-streams flink ours --repeat 8
"""

import argparse
import math
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import Message

from benchmarks import reference
from benchmarks.harness import (
    FINISHED_WITHIN_S,
    PARTITIONS,
    Stack,
    create_topics,
    delete_topics,
    fed,
    feed,
    median,
    percentile,
    reader,
    register_reading,
    running_stack,
)
from benchmarks.lane_log import LaneLog, lane_log, topic_records
from benchmarks.readings import READING_JSON
from benchmarks.rounds import completed, ratios, spread
from benchmarks.sides import (
    EXACT,
    JOBS,
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

QUIET_S = 15.0
"""The output has ended after so long without a record after the feed."""
TAIL_MS = 5_000
"""Windows of the last seconds, and of a grace for each window of the chain, are not compared:
nothing comes after them that closes them."""
PREFIX_BYTES = 5


@dataclass(frozen=True, slots=True)
class Seen:
    """One output record, its event time and the time of its receipt; ms since 1970."""

    event_ms: int
    held_ms: float
    topic: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Measured:
    """One output of a side in one round; latencies in ms.

    Args:
        side: the side.
        what: the output; of the chain, one of its windows.
        p50: the median latency.
        p99: the 99th percentile.
        count: results that are right, and timed.
        differing: windows of all that were compared that are lost or wrong.
        parts: medians of parts of the latency.
    """

    side: str
    what: str
    p50: float
    p99: float
    count: int
    differing: int = 0
    parts: tuple[tuple[str, float], ...] = ()


def timestamp(message: Message) -> int:
    """Event time of an output in ms, its record's timestamp."""
    return message.timestamp()[1]


def watch(
    stack: Stack,
    topics: Sequence[str],
    feeding: "subprocess.Popen[str]",
    event_ms: Callable[[Message], int] = timestamp,
    quiet_s: float = QUIET_S,
    *,
    at_end: bool = False,
) -> tuple[list[Seen], int, int]:
    """Read outputs during the feed, until all of them have begun, and have ended.

    Returns: the records, the start of the measured time, the readings sent since then.
    """
    consumer = reader(stack, *topics, at_end=at_end)
    seen: list[Seen] = []
    silent = set(topics)
    last_s = None
    ended_s = None
    try:
        while not _over(None if silent else last_s, ended_s, quiet_s):
            if ended_s is None and feeding.poll() is not None:
                ended_s = time.monotonic()
            message = consumer.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                raise SystemExit(f"the reader of {topics} failed: {message.error()}")
            held_ms = time.time_ns() / 1e6
            topic, value = message.topic() or "", message.value() or b""
            seen.append(Seen(event_ms(message), held_ms, topic, value))
            silent.discard(topic)
            last_s = time.monotonic()
    finally:
        consumer.close()
    facts = fed(feeding)
    return seen, facts["measured_from_ms"], facts["measured"]


def _over(last_s: float | None, ended_s: float | None, quiet_s: float) -> bool:
    """Whether an output has ended: no record for a while after the feed's end.

    Args:
        last_s: time of the last record; None before there is one of each output, since a cold
            query takes long for its first batch.
        ended_s: time of the feed's end.
        quiet_s: required time without a record.
    """
    if ended_s is None:
        return False
    now_s = time.monotonic()
    if last_s is None:
        return now_s - ended_s > FINISHED_WITHIN_S
    return now_s - max(last_s, ended_s) > quiet_s


@dataclass(frozen=True, slots=True)
class Fed:
    """The readings of a run: decoded, and their times in each partition, in order."""

    readings: tuple[reference.Decoded, ...]
    times_ms: tuple[tuple[int, ...], ...]

    def until_ms(self, run: Run) -> int:
        """The end of the last window that is compared."""
        tail_ms = TAIL_MS + len(run.targets) * run.grace_ms
        return min(times[-1] for times in self.times_ms) - tail_ms


def readings_of(stack: Stack, source: str) -> Fed:
    """Read a run's input."""
    schema = avro.parse(READING_JSON)
    records = topic_records(stack, source)
    times: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for part, at_ms, _ in records:
        times[part].append(at_ms)
    return Fed(
        tuple(codec.decode(schema, schema, value[PREFIX_BYTES:]) for _, _, value in records),
        tuple(tuple(sorted(part)) for part in times),
    )


def stateless(
    run: Run, seen: Sequence[Seen], sent: Fed, decode: Callable[[bytes], reference.Decoded]
) -> Callable[[int], list[Measured]]:
    """Latency of every output since its event time, which is CreateTime; from a time on."""
    rows = [reference.converted(decode(one.value)) for one in seen]
    expected = Counter(filter(None, map(reference.conversion, sent.readings)))
    if Counter(rows) != expected:
        found = Counter(rows)
        raise SystemExit(
            f"{run.name}: {(expected - found).total()} results are lost,"
            f" {(found - expected).total()} are wrong"
        )

    def measured(from_ms: int) -> list[Measured]:
        # Spark's own sink sets no timestamps, so event time is that in the value.
        times = [(row[-1], one.held_ms) for row, one in zip(rows, seen, strict=True)]
        late = [held_ms - at_ms for at_ms, held_ms in times if at_ms >= from_ms]
        return [
            Measured(run.side, run.job, percentile(late, 0.5), percentile(late, 0.99), len(late))
        ]

    return measured


def first_after(times_ms: Sequence[int], at_ms: float) -> int | None:
    """The first of sorted times at or after `at_ms`."""
    return next((t for t in times_ms if t >= at_ms), None)


def closed_by(sent: Fed, run: Run, end_ms: int) -> int:
    """Time of the reading that closes a window.

    Medusa and Flink need one after the window's end in every partition, Spark's own watermark and
    Kafka Streams in any of them.
    """
    moved = [first_after(times, end_ms + run.grace_ms) for times in sent.times_ms]
    due = [at_ms for at_ms in moved if at_ms is not None]
    return max(due) if run.side in EXACT else min(due)


def expected_windows(run: Run, sent: Fed) -> tuple[reference.Windows, ...]:
    """The reference results of each window of a job.

    The event time of a result of Flink's is 1 ms before its window's end, so that the next window
    is the same second.
    """
    if run.job == "window":
        return (reference.averages(sent.readings),)
    return reference.chain(sent.readings, -1 if run.side == "flink" else 0)


def windowed(
    run: Run,
    seen: Sequence[Seen],
    sent: Fed,
    decode: Callable[[bytes], reference.Decoded],
    log: LaneLog | None,
) -> Callable[[int], list[Measured]]:
    """Latency of each window's result from the window's end, for each output; from a time on."""

    def measured(from_ms: int) -> list[Measured]:
        found = []
        for topic, expected in zip(run.targets, expected_windows(run, sent), strict=True):
            held = [one.held_ms for one in seen if one.topic == topic]
            rows = [reference.window_of(decode(one.value)) for one in seen if one.topic == topic]
            # While it starts, a side whose time is that of the fastest partition loses windows.
            since_ms = 0 if run.side in EXACT else from_ms
            compared = reference.compare(expected, rows, since_ms, sent.until_ms(run))
            if run.side in EXACT and not compared.exact:
                raise SystemExit(
                    f"{run.name}: {topic}: {compared.lost} windows are lost, {compared.wrong} wrong"
                )
            right = [(rows[n][0].end_ms, held[n]) for n in compared.equal]
            timed = [(end_ms, at_ms) for end_ms, at_ms in right if end_ms >= from_ms]
            # What never came right counts as infinitely late.
            late = [at_ms - end_ms for end_ms, at_ms in timed] or [math.inf]
            found.append(
                Measured(
                    run.side,
                    topic.removesuffix(f"-{run.name}").removeprefix("bench-"),
                    percentile(late, 0.5),
                    percentile(late, 0.99),
                    len(timed),
                    compared.lost + compared.wrong,
                    window_parts(run, sent, timed, log if topic == run.targets[-1] else None),
                )
            )
        return found

    return measured


def window_parts(
    run: Run, sent: Fed, timed: Sequence[tuple[int, float]], log: LaneLog | None
) -> tuple[tuple[str, float], ...]:
    """Medians of parts of the latency: since the reading that closes the window, and of ours."""
    if run.job == "chain" or not timed:
        return ()
    closed = [(end_ms, closed_by(sent, run, end_ms), held_ms) for end_ms, held_ms in timed]
    named = [("since the reading that closes it", median([held - by for _, by, held in closed]))]
    if log is not None:
        parts = [log.parts(end_ms, by, held) for end_ms, by, held in closed]
        named += [(name, median([p[n] for p in parts])) for n, name in enumerate(LaneLog.names)]
    return tuple(named)


def measure(stack: Stack, run: Run, schema_id: int, options: argparse.Namespace) -> list[Measured]:
    """One side in one round."""
    run = replace(run, source=f"{run.source}-{run.name}")
    create_topics(stack, run.source)
    with running(stack, run, schema_id, options):
        feeding = feed(
            stack,
            "steady",
            schema_id,
            (run.source,),
            rate=options.rate,
            warm_up=options.warm_up,
            seconds=options.seconds,
        )
        seen, from_ms, _ = watch(stack, run.targets, feeding)
    sent, decode = readings_of(stack, run.source), decoder(stack, run)
    if run.job == "stateless":
        figures = stateless(run, seen, sent, decode)
    else:
        log = lane_log(stack, run) if run.side == OURS else None
        figures = windowed(run, seen, sent, decode, log)
    found = figures(from_ms)
    remove(stack, run)
    delete_topics(stack, run.source)
    for one in found:
        show(one)
    return found


def show(measured: Measured) -> None:
    """Print one side's latencies and parts."""
    differing = f", {measured.differing} windows differ" if measured.differing else ""
    print(
        f"{measured.side:>13} {measured.what:>10}: p50 {measured.p50:7.1f} ms"
        f"  p99 {measured.p99:7.1f} ms  ({measured.count} results{differing})",
        flush=True,
    )
    for name, value in measured.parts:
        print(f"{'':>26}{value:7.1f} ms  {name}", flush=True)


def summarise(job: str, rounds: Sequence[Sequence[Measured]], sides: Sequence[str]) -> None:
    """Print medians with 90 % intervals, and the ratios of Medusa to each other side."""
    print(f"\n{job}, medians of {len(rounds)} rounds [90 % interval]")
    for what in dict.fromkeys(m.what for found in rounds for m in found):
        figures = {
            name: [{m.side: getattr(m, name) for m in found if m.what == what} for found in rounds]
            for name in ("p50", "p99", "differing")
        }
        for side in sides:
            p50, p99, differing = (
                spread([figure[side] for figure in figures[name]]) for name in figures
            )
            differ = f", windows that differ: {differing.text()}" if differing.high else ""
            print(f"{side:>13} {what:>10}: p50 {p50.text()} ms, p99 {p99.text()} ms{differ}")
        for other in against(sides):
            p50, p99 = (ratios(figures[name], OURS, other) for name in ("p50", "p99"))
            print(f"ours / {other}, {what}: p50 {p50.text(2)}, p99 {p99.text(2)}")


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_options(parser, 3)
    parser.add_argument("--job", choices=tuple(JOBS), default="stateless")
    parser.add_argument("--rate", type=float, default=1_000, help="readings a second")
    parser.add_argument("--warm-up", type=float, default=20, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=30, help="seconds measured")
    options = parser.parse_args(arguments)
    if options.quick:
        options.repeat, options.warm_up, options.seconds = 1, 10, 10
    with running_stack(node=OURS in options.sides) as stack:
        prepare_peers(stack, options)
        schema_id = register_reading(stack)

        def measured(turn: int) -> list[Measured]:
            found = [
                measure(stack, r, schema_id, options) for r in runs(options.job, turn, options)
            ]
            return [one for of_side in found for one in of_side]

        rounds = completed(options.repeat, measured)
    summarise(options.job, rounds, options.sides)
    return 0 if len(rounds) == options.repeat else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
