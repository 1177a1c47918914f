"""Whether a fragment is charged what it costs: pause one, and compare the fall of the node's CPU.

    python -m benchmarks.metering                        # three fragments, each paused once
    python -m benchmarks.metering --pauses windows --seconds 60

Three different fragments read the same records at a steady rate. For each pause: what the fragment
was charged in some time before it, and by how much the CPU time of the node's processes in the same
time falls after it. The latter is read from /proc, by other code than the node's. All charges
together cannot make up for a wrong division among the fragments. A pace keeps the number of batches
of the others, which would grow if they had more of the machine.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.harness import (
    SOURCE,
    STARTED_WITHIN_S,
    Stack,
    all_run,
    create_topics,
    feed,
    register_reading,
    running_stack,
    wait_for,
)
from benchmarks.processes import computed_s, node_of

NETWORK: Final = "bench_metering"
SETTLE_S: Final = 15.0
REPORT_S: Final = 10.0
WITHIN: Final = 0.15
BOXES: Final[Mapping[str, Mapping[str, object]]] = {
    "warm": {"filter": "readings", "where": "celsius > 20 and upper(note) <> ''"},
    "windows": {
        "aggregate": "readings",
        "window": "1s",
        "by": ["sensor"],
        "compute": {"n": "count(*)", "celsius": "avg(celsius)", "sites": "count(DISTINCT site)"},
    },
    "once": {"deduplicate": "readings", "by": ["sensor", "count"], "within": "5s"},
}


@dataclass(frozen=True, slots=True)
class Charged:
    """What a node has reported: load units since its start, and when."""

    at_s: float
    by_fragment: Mapping[str, Mapping[str, float]]
    node: Mapping[str, Any]

    def per_s(self, before: "Charged", fragment: str) -> float:
        """Load units that a fragment was charged, in each second since an earlier report."""
        now, then = (one.by_fragment[fragment]["units_charged"] for one in (self, before))
        return (now - then) / (self.at_s - before.at_s)


def document(pace: str) -> str:
    """The network, in JSON, which is YAML."""
    stream = {
        "topic": SOURCE,
        "schema": "schemas/reading.avsc",
        "event_time": "at",
        "lateness": "1s",
        "start": "latest",
    }
    network = {
        "network": NETWORK,
        "pace": pace,
        "streams": {"readings": stream},
        "boxes": BOXES,
        "outputs": {box: {"topic": f"{NETWORK}-{box}", "partitions": 4} for box in BOXES},
    }
    return json.dumps(network)


def reported(stack: Stack) -> Charged | None:
    """The last report of the node; None: there is none with all fragments yet."""
    load = json.loads(stack.medusa("node", "list", "-o", "json"))["nodes"][0]["load"]
    if load is None:
        return None
    rows = {one["fragment"]: one for one in load["fragments"]}
    at_s = time.mktime(time.strptime(load["at"][:19], "%Y-%m-%dT%H:%M:%S"))
    at_s += float(load["at"][19:].rstrip("Z") or 0)
    return Charged(at_s, rows, load)


def next_report(stack: Stack, fragments: frozenset[str]) -> Charged:
    """The next report with these fragments, as soon as it is there."""
    before, found = reported(stack), list[Charged]()

    def there() -> bool:
        now = reported(stack)
        is_new = now is not None and (before is None or now.at_s > before.at_s)
        if is_new and now is not None and fragments <= now.by_fragment.keys():
            found.append(now)
        return bool(found)

    wait_for(there, 6 * REPORT_S, "a report of the node's load")
    return found[0]


def rate_of(stack: Stack, seconds: float) -> float:
    """CPU of the node and its descendants, in per cent of one core."""
    node = node_of(stack.pid)
    began_s, before_s = time.monotonic(), computed_s(node)
    time.sleep(seconds)
    return 100 * (computed_s(node) - before_s) / (time.monotonic() - began_s)


def check(stack: Stack, paused: str, seconds: float) -> bool:
    """Pause a fragment; print what it was charged and what the node's CPU fell by."""
    every = frozenset(BOXES)
    first = next_report(stack, every)
    with_it = rate_of(stack, seconds)
    last = next_report(stack, every)
    core = last.node["core"]
    charged = last.per_s(first, paused) / core
    stack.medusa("pause", f"{NETWORK}.{paused}")
    time.sleep(SETTLE_S)
    without = rate_of(stack, seconds)
    stack.medusa("resume", f"{NETWORK}.{paused}")
    fell = with_it - without
    error = charged / fell - 1 if fell > 0 else float("inf")
    parts = last.by_fragment[paused]
    names = ("planning", "tasks", "writing", "functions", "shared")
    shown = " ".join(f"{name} {parts[name] / core:.1f}" for name in names)
    sums = sum(last.per_s(first, one) for one in every) / core
    print(
        f"{paused:8} charged {charged:6.2f}  fell {fell:6.2f}  error {100 * error:+6.1f} %  "
        f"node {with_it:6.1f} -> {without:6.1f}  all charged {sums:.1f}  "
        f"overhead {last.node['overhead'] / core:.2f}  metering {last.node['metering'] / core:.3f}"
        f"\n         {shown}",
        flush=True,
    )
    print(
        f"         in {parts['records_in_per_s']}/s {parts['bytes_in_per_s']} B/s, "
        f"out {parts['records_out_per_s']}/s {parts['bytes_out_per_s']} B/s, core {core}",
        flush=True,
    )
    return bool(abs(error) <= WITHIN)


@contextmanager
def fed_steadily(stack: Stack, rate: float, seconds: float) -> Iterator[None]:
    """Send records while the block runs."""
    process = feed(stack, "steady", register_reading(stack), rate=rate, warm_up=0, seconds=seconds)
    try:
        yield
    finally:
        process.kill()
        process.wait(20)


def main(arguments: list[str]) -> int:
    """Run the benchmark; exit code 1: a charge was further from the fall than permitted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metering", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--pauses", nargs="+", default=tuple(BOXES), choices=tuple(BOXES), help="(all)")
    add("--rate", type=float, default=2_000.0, help="records a second (%(default)s)")
    add("--pace", default="1s", help="least time between two batches (%(default)s)")
    add("--warm-up", type=float, default=90.0, help="seconds before (%(default)s)")
    add("--seconds", type=float, default=60.0, help="of each measurement (%(default)s)")
    options = parser.parse_args(arguments)
    print("per cent of a core of this machine", flush=True)
    right = []
    with running_stack() as stack:
        create_topics(stack, SOURCE)
        with fed_steadily(stack, options.rate, 3_600):
            (stack.folder / f"{NETWORK}.yaml").write_text(document(options.pace))
            stack.medusa("deploy", "-f", f"{NETWORK}.yaml")
            wait_for(lambda: all_run(stack, NETWORK), STARTED_WITHIN_S, f"network {NETWORK}")
            time.sleep(options.warm_up)
            for paused in options.pauses:
                right.append(check(stack, paused, options.seconds))
                wait_for(lambda: all_run(stack, NETWORK), STARTED_WITHIN_S, "the paused one")
                time.sleep(3 * SETTLE_S)
    print(f"{sum(right)} of {len(right)} within {100 * WITHIN:.0f} %")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
