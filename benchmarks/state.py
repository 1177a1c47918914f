"""Memory and state of a join and of sessions with a million keys, compared with plain PySpark.

The bounds are an hour, so no row leaves the state: the join keeps a row of each key on both sides,
the sessions one for each key. After all is read, and Spark has had time to upload its snapshots:
resident memory of the Java process, its heap after a collection, the state's files in the
checkpoint, and Spark's own metrics of the state. Each side has a separate Java process, a new one
for each kind, and is also measured before; `more` is the increase by the query and its state.

    python -m benchmarks.state --keys 1000000
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.both_sides import PlainNode, Run, plain_node, progress, running
from benchmarks.harness import Stack, create_topics, fed, feed, register_reading, running_stack
from benchmarks.kinds import KEPT
from benchmarks.processes import java_of
from benchmarks.throughput import follow, rate

SETTLED_AFTER_S = 65.0
"""Plain PySpark uploads its snapshots once a minute."""
MIB = 2**20
EVENTS_A_SECOND = 2_000
"""Of event time: all keys are within less than the bounds."""


@dataclass(frozen=True, slots=True)
class Memory:
    """A Java process: resident memory, and heap after a collection; bytes."""

    resident: int
    heap: int


def memory_of(java: int) -> Memory:
    """Measure a Java process after a collection of its heap."""
    _jcmd(java, "GC.run")
    heap = sum(
        int(kib) for kib in re.findall(r"total \d+K, used (\d+)K", _jcmd(java, "GC.heap_info"))
    )
    status = Path(f"/proc/{java}/status").read_text(encoding="utf-8")
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    if resident is None:
        raise SystemExit("Linux does not tell how much memory Java takes")
    return Memory(int(resident[1]) * 1024, heap * 1024)


def _jcmd(java: int, command: str) -> str:
    done = subprocess.run(
        ["jcmd", str(java), command], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def state_bytes(folder: Path) -> int:
    """Size of all state-store files in the checkpoints below a folder."""
    return sum(
        size
        for state in folder.rglob("state")
        if (state.parent / "offsets").is_dir()
        for size in sizes_in(state)
    )


def sizes_in(folder: Path) -> Iterator[int]:
    """Sizes of the files below a folder; of those that are removed meanwhile none."""
    for path, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                yield (Path(path) / file).stat().st_size


@contextmanager
def told_metrics() -> Iterator[Path]:
    """A folder for the metrics of Spark sessions that start during the block."""
    with tempfile.TemporaryDirectory(prefix="medusa-bench-metrics-") as name:
        folder = Path(name)
        (folder / "spark-defaults.conf").write_text(
            "spark.sql.streaming.metricsEnabled true\n"
            "spark.metrics.conf.*.sink.csv.class org.apache.spark.metrics.sink.CsvSink\n"
            "spark.metrics.conf.*.sink.csv.period 1\n"
            f"spark.metrics.conf.*.sink.csv.directory {folder}\n",
            encoding="utf-8",
        )
        before = os.environ.get("SPARK_CONF_DIR")
        os.environ["SPARK_CONF_DIR"] = name
        try:
            yield folder
        finally:
            os.environ.pop("SPARK_CONF_DIR")
            if before is not None:
                os.environ["SPARK_CONF_DIR"] = before


def metric(folder: Path, name: str) -> int:
    """The maximum of a metric's last values over all queries that have reported it."""
    values = [
        int(file.read_text(encoding="utf-8").split()[-1].split(",")[1])
        for file in folder.rglob(f"*{name}.csv")
    ]
    if not values:
        raise SystemExit(f"Spark told no {name}")
    return max(values)


def measure(stack: Stack, node: PlainNode, run: Run, keys: int, metrics: Path) -> None:
    """Measure one side of one kind, and print its row of the table."""
    java = java_of(stack.pid if run.side == "ours" else node.process.pid)
    before = memory_of(java)
    for file in metrics.glob("*.csv"):
        file.unlink()
    create_topics(stack, *run.sources)
    records = keys * len(run.sources)
    loading = feed(
        stack,
        "rising",
        register_reading(stack),
        run.sources,
        records=records,
        rate=EVENTS_A_SECOND,
        sensors=keys,
    )
    fed(loading)
    with running(stack, node, run), progress(stack, node, run) as read:
        seen = follow(read, records, run.name)
        time.sleep(SETTLED_AFTER_S)
        after = memory_of(java)
        folder = stack.folder / (".medusa" if run.side == "ours" else f"plain-node/{run.target}")
        sizes = (
            after.resident,
            after.resident - before.resident,
            after.heap,
            after.heap - before.heap,
            state_bytes(folder),
            metric(metrics, "states-usedBytes"),
        )
        rows = metric(metrics, "states-rowsTotal")
    shown = " | ".join(f"{size / MIB:,.0f} MiB" for size in sizes)
    read_at = f"{rate(seen, 0) / 1e3:.0f} k/s"
    print(f"| {run.kind} | {run.side} | {read_at} | {shown} | {rows:,} |", flush=True)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--kinds", choices=tuple(KEPT), nargs="+", default=tuple(KEPT))
    options = parser.parse_args(arguments)
    print("| kind | side | read | resident | more | heap | more | files | Spark's memory | rows |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for kind in options.kinds:
        with told_metrics() as metrics, running_stack() as stack, plain_node(stack) as node:
            for side in ("sink", "ours"):
                measure(stack, node, Run(kind, side, 1), options.keys, metrics)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
