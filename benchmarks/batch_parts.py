"""Parts of a small batch: where its time goes, and its CPU, while 1,000 readings a second flow.

    python -m benchmarks.batch_parts
    python -m benchmarks.batch_parts --job window --seconds 60
    python -m benchmarks.batch_parts --records 6000000 --lanes 3   # how long plans take

Times are medians over the batches, of the parts that Spark itself reports of each; `latestOffset`
contains the wait for the next batch, so it is not a part of a batch. `addBatch` contains all that
Spark computes, and what is written with it. CPU is that of a whole process over the measured time,
for each batch. With `chain` all three queries count together.

With `--records` so many readings are there before any lane starts, and that many lanes read all of
them. Then no batch has to be waited for, and `latestOffset` is the time for which Spark waits for
its plan: the call from Java, the plan, and the answer.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.harness import (
    SOURCE,
    Stack,
    create_topics,
    fed,
    feed,
    median,
    percentile,
    reader,
    register_reading,
    running_stack,
    stable_end,
)
from benchmarks.processes import computed_s, java_of, kafka_of, node_of, own_s
from benchmarks.sides import JOBS, OURS, Run, running
from benchmarks.throughput import follow, load

PARTS = (
    "latestOffset",
    "walCommit",
    "getBatch",
    "queryPlanning",
    "addBatch",
    "commitOffsets",
    "triggerExecution",
)
WAIT = "latestOffset"
LOG_SETTINGS = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %m%n
logger.stream.name = org.apache.spark.sql.execution.streaming
logger.stream.level = info
"""
"""Spark logs its progress after each batch, at the level INFO."""
_PROGRESS = re.compile(r"made progress: (\{.*?\n\})", re.DOTALL)


def batches(log: str) -> list[Mapping[str, int]]:
    """The durations of the batches in a log of Spark's, each in ms by part."""
    return [json.loads(found)["durationMs"] for found in _PROGRESS.findall(log)]


def cpu_s(stack: Stack) -> dict[str, float]:
    """CPU seconds so far of the processes that take part."""
    return {
        "Java": own_s(java_of(stack.pid)),
        "node": own_s(node_of(stack.pid)),
        "Kafka": own_s(kafka_of(stack.pid)),
        "all": computed_s(stack.pid),
    }


def show(found: Sequence[Mapping[str, int]], cpu: Mapping[str, float]) -> None:
    """Print the parts."""
    print(f"{len(found)} batches; medians in ms:")
    for part in PARTS:
        values = [float(one[part]) for one in found if part in one]
        if values:
            print(f"  {part:<18}{median(values):7.0f}")
    own = [float(one["triggerExecution"] - one.get(WAIT, 0)) for one in found]
    print(f"  {'without the wait':<18}{median(own):7.0f}")
    print("CPU for each batch in ms:")
    for process, seconds in cpu.items():
        print(f"  {process:<18}{1_000 * seconds / len(found):7.0f}")


def measure(stack: Stack, options: argparse.Namespace) -> None:
    """Run one network, and print what its batches took."""
    schema_id = register_reading(stack)
    run = Run(options.job, OURS, 0)
    create_topics(stack, run.source)
    log = stack.folder / ".medusa" / "logs" / "node1.out"
    with running(stack, run, schema_id, options):
        rates = {"rate": options.rate, "warm_up": 0, "seconds": options.warm_up}
        fed(feed(stack, "steady", schema_id, (run.source,), **rates))
        before, skipped = cpu_s(stack), len(log.read_text())
        rates["seconds"] = options.seconds
        fed(feed(stack, "steady", schema_id, (run.source,), **rates))
        after, text = cpu_s(stack), log.read_text()[skipped:]
    found = batches(text)
    if not found:
        raise SystemExit(f"{log} has no progress of Spark's")
    show(found, {process: after[process] - before[process] for process in after})


def plan_times(log: str) -> list[float]:
    """Times in ms for which queries that caught up have waited for the plan of a batch.

    The first batch of a query is planned before it starts, and the last one waits for records.
    """
    queries: dict[str, list[Mapping[str, int]]] = defaultdict(list)
    for found in map(json.loads, _PROGRESS.findall(log)):
        if found["numInputRows"]:
            queries[found["runId"]].append(found["durationMs"])
    return [float(one[WAIT]) for batches in queries.values() for one in batches[1:-1]]


def catch_up(stack: Stack, options: argparse.Namespace) -> None:
    """Let several networks read preloaded readings, and print how long their plans took."""
    schema_id = register_reading(stack)
    create_topics(stack, SOURCE)
    load(stack, schema_id, options.records)
    lanes = [Run("stateless", OURS, turn) for turn in range(options.lanes)]
    log = stack.folder / ".medusa" / "logs" / "node1.out"
    with ExitStack() as undo:
        for run in lanes:
            undo.enter_context(running(stack, run, schema_id, options))
        consumers = {run.targets[0]: reader(stack, run.targets[0], at_end=True) for run in lanes}
        for consumer in consumers.values():
            undo.callback(consumer.close)
        begun = time.monotonic()

        def reached() -> int:
            return sum(stable_end(consumer, topic) for topic, consumer in consumers.items())

        seen = follow(reached, options.records * options.lanes, "the output of all lanes")
        (first_s, first), (last_s, last) = seen[0], seen[-1]
        text = log.read_text()
    times = sorted(plan_times(text))
    if not times:
        raise SystemExit(f"{log} has no progress of Spark's")
    print(f"{options.lanes} lanes: {(last - first) / (last_s - first_s) / 1_000:.0f} k/s together,")
    print(f"  {last_s - begun:.0f} s, {len(times)} batches planned while they were behind;")
    print(
        "  " + ", ".join(f"p{100 * q:.0f} {percentile(times, q):.0f} ms" for q in (0.5, 0.9, 0.99))
    )
    print(f"  longest {times[-1]:.0f} ms")


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=tuple(JOBS), default="stateless")
    parser.add_argument("--rate", type=float, default=1_000, help="readings a second")
    parser.add_argument("--warm-up", type=float, default=60, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=30, help="seconds measured")
    parser.add_argument("--records", type=int, help="preloaded readings, for lanes to catch up")
    parser.add_argument("--lanes", type=int, default=3, help="stateless networks that catch up")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="medusa-bench-") as folder:
        settings = Path(folder) / "log4j2.properties"
        settings.write_text(LOG_SETTINGS, encoding="utf-8")
        os.environ["JDK_JAVA_OPTIONS"] = f"-Dlog4j2.configurationFile={settings}"
        with running_stack() as stack:
            (catch_up if options.records else measure)(stack, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
