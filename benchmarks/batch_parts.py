"""Parts of a small batch: where its time goes, and its CPU, while 1,000 readings a second flow.

    python -m benchmarks.batch_parts
    python -m benchmarks.batch_parts --job window --seconds 60

Times are medians over the batches, of the parts that Spark itself reports of each; `latestOffset`
contains the wait for the next batch, so it is not a part of a batch. `addBatch` contains all that
Spark computes, and what is written with it. CPU is that of a whole process over the measured time,
for each batch. With `chain` all three queries count together.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import (
    Stack,
    create_topics,
    fed,
    feed,
    median,
    register_reading,
    running_stack,
)
from benchmarks.processes import computed_s, java_of, kafka_of, node_of, own_s
from benchmarks.sides import JOBS, OURS, Run, running

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


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=tuple(JOBS), default="stateless")
    parser.add_argument("--rate", type=float, default=1_000, help="readings a second")
    parser.add_argument("--warm-up", type=float, default=60, help="seconds before measuring")
    parser.add_argument("--seconds", type=float, default=30, help="seconds measured")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="medusa-bench-") as folder:
        settings = Path(folder) / "log4j2.properties"
        settings.write_text(LOG_SETTINGS, encoding="utf-8")
        os.environ["JDK_JAVA_OPTIONS"] = f"-Dlog4j2.configurationFile={settings}"
        with running_stack() as stack:
            measure(stack, options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
