"""Memory and time of a rebuild of a state from the log, for states of several sizes.

For each number of keys, a join and sessions with bounds of an hour read a record of each key (a
join: one on each side), so no row leaves the state. Then everything is stopped, the checkpoints are
deleted, and a new node rebuilds the state. Printed per kind and size: resident memory of Spark's
Java process before the stop, the largest one of the new process until the fragment runs, the number
of planned batches, and seconds and records a second of the rebuild. Memory is bounded if the
largest one follows the state and not the number of records that are read.

    python -m benchmarks.rebuild --keys 250000 1000000
"""

import argparse
import json
import re
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.both_sides import Lane, Run, written_document
from benchmarks.harness import (
    STARTED_WITHIN_S,
    Stack,
    all_run,
    create_topics,
    fed,
    feed,
    register_reading,
    running_stack,
    wait_for,
)
from benchmarks.kinds import KEPT
from benchmarks.processes import java_of
from benchmarks.state import EVENTS_A_SECOND, MIB
from benchmarks.throughput import follow

REBUILT_WITHIN_S = 900.0
POLL_S = 1.0
CHECKPOINTS = Path(".medusa") / "checkpoints"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A rebuild.

    Args:
        batches: its planned batches; 0 until one was seen.
        seconds: from the first sight of it until the fragment runs.
        peak_bytes: the largest resident memory of Java.
    """

    batches: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0


def memory_bytes(java: int, field: str) -> int:
    """A field of `/proc/PID/status`: `VmRSS` is resident memory, `VmHWM` its maximum."""
    status = Path(f"/proc/{java}/status").read_text(encoding="utf-8")
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    if found is None:
        raise SystemExit(f"/proc/{java}/status has no {field}")
    return int(found[1]) * 1024


def restarted(stack: Stack, network: str) -> Rebuilt:
    """Stop everything, delete the checkpoints, start again, and follow the rebuild.

    Raises:
        SystemExit: there was no rebuild, or it took longer than `REBUILT_WITHIN_S`.
    """
    stack.medusa("down")
    shutil.rmtree(stack.folder / CHECKPOINTS)
    stack.medusa("up", "--detach")
    java, found, since_s = java_of(stack.pid), Rebuilt(), 0.0
    ends_s = time.monotonic() + REBUILT_WITHIN_S
    while not all_run(stack, network):
        now_s = time.monotonic()
        if now_s > ends_s:
            raise SystemExit(f"{network} was not rebuilt after {REBUILT_WITHIN_S:.0f} s")
        rows = json.loads(stack.medusa("status", network, "-o", "json"))["fragments"]
        for rebuild in (row["rebuild"] for row in rows if row["rebuild"] is not None):
            since_s = since_s or now_s
            found = replace(found, batches=int(rebuild["batches"]))
        time.sleep(POLL_S)
    if not found.batches:
        raise SystemExit(f"{network} runs, and no rebuild was seen")
    peak = memory_bytes(java, "VmHWM")
    return replace(found, seconds=time.monotonic() - since_s, peak_bytes=peak)


def measure(stack: Stack, run: Run, keys: int) -> None:
    """Fill the state of one kind, rebuild it, and print its row of the table."""
    create_topics(stack, *run.sources)
    records = keys * len(run.sources)
    schema_id = register_reading(stack)
    fed(
        feed(
            stack,
            "rising",
            schema_id,
            run.sources,
            records=records,
            rate=EVENTS_A_SECOND,
            sensors=keys,
        )
    )
    stack.medusa("deploy", "-f", written_document(stack, run))
    wait_for(lambda: all_run(stack, run.network), STARTED_WITHIN_S, run.network)
    lane = Lane(stack, run)
    try:
        follow(lane.read, records, run.name)
    finally:
        lane.close()
    before = memory_bytes(java_of(stack.pid), "VmRSS")
    rebuilt = restarted(stack, run.network)
    shown = f"{before / MIB:,.0f} | {rebuilt.peak_bytes / MIB:,.0f} | {rebuilt.batches}"
    rate = records / rebuilt.seconds / 1e3
    row = f"{run.kind} | {keys:,} | {records:,} | {shown} | {rebuilt.seconds:.1f} | {rate:.0f} k/s"
    print(f"| {row} |", flush=True)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--keys", type=int, nargs="+", default=(250_000, 1_000_000))
    parser.add_argument("--kinds", choices=tuple(KEPT), nargs="+", default=tuple(KEPT))
    options = parser.parse_args(arguments)
    print("| kind | keys | records | MiB before | peak MiB | batches | seconds | rate |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for kind in options.kinds:
        for keys in options.keys:
            with running_stack() as stack:
                measure(stack, Run(kind, "ours", 1), keys)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
