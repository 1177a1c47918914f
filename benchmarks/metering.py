"""Whether a fragment is charged what it costs: pause one, and compare the fall of the node's CPU.

    python -m benchmarks.metering                        # three fragments, each paused once
    python -m benchmarks.metering --pauses windows --seconds 60

Three different fragments read the same records at a steady rate. Between two spans of time in which
all of them run there is one in which one of them is paused. Compared are what it was charged in the
spans around, and by how much the CPU time of the node's processes is lower in the one between. The
latter is read from /proc, by other code than the node's. Around, since Java compiles less and less.
All charges together cannot make up for a wrong division among the fragments. A pace keeps the
number of batches of the others, which would grow if they had more of the machine.
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
POLL_S: Final = 1.0
"""Between two looks for a report: each starts a process."""
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
class Report:
    """What a node has reported, and when: load units since its start, of each fragment."""

    at_s: float
    by_fragment: Mapping[str, Mapping[str, float]]
    node: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time, in per cent of a core of this machine.

    Args:
        cpu: of the node and its descendants, as the kernel counts it.
        charged: to each fragment.
        overhead: of the node.
        last: the report at its end.
    """

    cpu: float
    charged: Mapping[str, float]
    overhead: float
    last: Report

    def __str__(self) -> str:
        parts = "  ".join(f"{name} {units:6.2f}" for name, units in self.charged.items())
        return f"cpu {self.cpu:7.2f}  {parts}  overhead {self.overhead:5.2f}"


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


def reported(stack: Stack) -> Report | None:
    """The last report of the node; None: there is none yet."""
    load = json.loads(stack.medusa("node", "list", "-o", "json"))["nodes"][0]["load"]
    if load is None:
        return None
    rows = {one["fragment"]: one for one in load["fragments"]}
    at_s = time.mktime(time.strptime(load["at"][:19], "%Y-%m-%dT%H:%M:%S"))
    at_s += float(load["at"][19:].rstrip("Z") or 0)
    return Report(at_s, rows, load)


def next_report(stack: Stack) -> Report:
    """The next report, as soon as it is there."""
    before, found = reported(stack), list[Report]()

    def there() -> bool:
        time.sleep(POLL_S)
        now = reported(stack)
        if now is not None and (before is None or now.at_s > before.at_s):
            found.append(now)
        return bool(found)

    wait_for(there, 6 * REPORT_S, "a report of the node's load")
    return found[0]


def span(stack: Stack, seconds: float) -> Span:
    """Measure for some time: from one report of the node to another."""
    node = node_of(stack.pid)
    first = next_report(stack)
    began_s, before_s = time.monotonic(), computed_s(node)
    time.sleep(seconds)
    last = next_report(stack)
    cpu = 100 * (computed_s(node) - before_s) / (time.monotonic() - began_s)
    core, span_s = last.node["core"], last.at_s - first.at_s

    def per_s(now: float, then: float) -> float:
        return float((now - then) / span_s / core)

    charged = {
        one: per_s(last.by_fragment[one]["units_charged"], row["units_charged"])
        for one, row in sorted(first.by_fragment.items())
        if one in last.by_fragment
    }
    overhead = per_s(last.node["units_overhead"], first.node["units_overhead"])
    return Span(cpu, charged, overhead, last)


def compare(paused: str, before: Span, without: Span, after: Span) -> bool:
    """Print a charge, and by how much the node's CPU fell; returns whether both agree."""
    charged = (before.charged[paused] + after.charged[paused]) / 2
    fell = (before.cpu + after.cpu) / 2 - without.cpu
    error = charged / fell - 1 if fell > 0 else float("inf")
    parts, core = before.last.by_fragment[paused], before.last.node["core"]
    names = ("planning", "tasks", "writing", "functions", "shared")
    shown = "  ".join(f"{name} {parts[name] / core:.1f}" for name in names)
    print(f"{paused}: charged {charged:.2f}, fell {fell:.2f}, error {100 * error:+.1f} %")
    print(f"  {shown}", flush=True)
    return bool(abs(error) <= WITHIN)


def shown(what: str, found: Span) -> Span:
    """Print a span."""
    print(f"{what:16} {found}", flush=True)
    return found


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
    add("--warm-up", type=float, default=240.0, help="seconds before (%(default)s)")
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
            around = shown("all run", span(stack, options.seconds))
            for paused in options.pauses:
                stack.medusa("pause", f"{NETWORK}.{paused}")
                time.sleep(SETTLE_S)
                without = shown(f"without {paused}", span(stack, options.seconds))
                stack.medusa("resume", f"{NETWORK}.{paused}")
                wait_for(lambda: all_run(stack, NETWORK), STARTED_WITHIN_S, "the paused one")
                time.sleep(2 * SETTLE_S)
                before, around = around, shown("all run", span(stack, options.seconds))
                right.append(compare(paused, before, without, around))
        metering = around.last.node["metering"] / around.last.node["core"]
        print(f"metering {metering:.3f}, {100 * metering / around.cpu:.2f} % of the node's CPU")
    print(f"{sum(right)} of {len(right)} within {100 * WITHIN:.0f} %")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
