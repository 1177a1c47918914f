"""Soak test: a long run under load with repeated faults, and exact checks of the results.

    python -m benchmarks.soak                            # 20 minutes, 20,000 readings a second
    python -m benchmarks.soak --minutes 3 --rate 5000

A fault follows ten seconds after the recovery from the last one. Printed are, for each fault, the
time from the fault to a node that is ready, and from there to the first stable output; at the end
lost and duplicated results, and the node's memory. Exit code 0: all was exact.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.harness import median
from benchmarks.soak_feed import DOCUMENT, SCHEMA, Load
from pipeline.cli.project import load_project
from pipeline.examples.memory import resident_bytes
from pipeline.ids import TopicName
from tests.faults.history import Finding
from tests.faults.judge import check_lanes, seen_in
from tests.faults.reads import check_reads
from tests.faults.strikes import FAULTS, Fault
from tests.faults.values import Columns, check_order, check_values, counts
from tests.faults.world import RunFailedError, Running, World, world

DEFAULT_FAULTS = (
    "kill_node",
    "kill_node_in_batch",
    "kill_jvm",
    "kill_broker",
    "kill_node_after_marker",
    "kill_zookeeper",
    "checkpoint_deleted",
    "zombie",
)
COLUMNS = Columns(("site", "window_start", "window_end", "n", "total"), ("site", "window_end"))
OUTPUT_WITHIN_S = 120.0
MIB = 1_048_576


@dataclass(frozen=True, slots=True)
class Recovered:
    """One fault: seconds until all processes were ready, and then to the first stable output."""

    fault: str
    up_s: float
    output_s: float
    node_mib: int

    @property
    def total_s(self) -> float:
        """Seconds from the fault to the first stable output."""
        return self.up_s + self.output_s


def main(arguments: Sequence[str]) -> int:
    """Run the soak."""
    options = _options(arguments)
    folder = Path(tempfile.mkdtemp(prefix="medusa-soak-"))
    cache = Path(load_project({}, os.environ, Path.cwd()).settings.cache).expanduser()
    try:
        with world(folder, cache.absolute()) as made:
            return _soak(made, options)
    except RunFailedError as error:
        print(f"failed: {error}")
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--minutes", type=float, default=20.0, help="how long (%(default)s)")
    add("--rate", type=int, default=20_000, help="readings a second (%(default)s)")
    add("--pause", type=float, default=10.0, help="seconds between two faults (%(default)s)")
    add("--faults", nargs="+", default=DEFAULT_FAULTS, choices=tuple(FAULTS), metavar="FAULT")
    add("--seed", type=int, default=1, help="of the order of faults and their moments")
    return parser.parse_args(arguments)


def _soak(made: World, options: argparse.Namespace) -> int:
    random, network = Random(options.seed), "soak"
    document = DOCUMENT.replace("{name}", network)
    plan = made.deploy(network, document, {"readings.avsc": SCHEMA})
    topic = f"{network}-readings"
    schema_id = made.registry.register(f"{topic}-value", SCHEMA)
    load = Load(made.stack.kafka_bootstrap_servers, topic, schema_id, options.rate)
    now_ms = _now_ms()
    running = made.run(network, plan, load)
    made.restart()
    made.await_stable(now_ms)
    time.sleep(options.pause)
    first_mib = _node_mib(made)
    print(
        f"{options.rate:,} readings a second for {options.minutes:g} minutes; node {first_mib} MiB"
    )
    ends_at = time.monotonic() + options.minutes * 60
    recovered: list[Recovered] = []
    while time.monotonic() < ends_at:
        name = options.faults[len(recovered) % len(options.faults)]
        recovered.append(_strike(made, running, FAULTS[name], random))
        _tell(len(recovered), recovered[-1])
        time.sleep(options.pause)
    last_mib = _node_mib(made)
    made.await_complete(running, load.finish())
    findings = _judge(made, running, load)
    _report(load.sent, recovered, findings)
    print(f"memory of node and Java: {first_mib} MiB at the start, {last_mib} MiB at the end")
    return 1 if findings else 0


def _strike(made: World, running: Running, fault: Fault, random: Random) -> Recovered:
    """Inject one fault, and wait for the first stable output after it."""
    node_mib, began = _node_mib(made), time.monotonic()
    fault.strike(made, random)
    up_at, since_ms = time.monotonic(), _now_ms()
    outputs = [fragment.output.topic for fragment in running.plan.fragments]
    made.await_stable(since_ms)
    made.wait(
        lambda: running.observer.first_since(outputs, up_at) is not None,
        f"output after {fault.name}",
        OUTPUT_WITHIN_S,
    )
    first = running.observer.first_since(outputs, up_at) or up_at
    return Recovered(fault.name, up_at - began, first - up_at, node_mib)


def _judge(made: World, running: Running, load: Load) -> tuple[Finding, ...]:
    """Compare all results with the sums of the sent readings, and check the lanes' guarantees."""
    history = made.history(running, ())
    (topic,) = (fragment.output.topic for fragment in running.plan.fragments)
    seen = seen_in(TopicName(topic), COLUMNS.names, history, made.decoder())
    expected = list(load.expected())
    letters = sum(status.dead_letters for status in made.catalog.statuses.of(running.plan.network))
    print(f"{len(expected):,} results expected, {len(seen):,} came, {letters} dead letters")
    return (
        *check_values(topic, COLUMNS, expected, seen),
        *check_order(COLUMNS, expected, seen),
        *check_reads(history.reads),
        *check_lanes(history),
    )


def _tell(number: int, one: Recovered) -> None:
    print(
        f"{number:4}  {one.fault:24} up after {one.up_s:6.1f} s, output {one.output_s:6.1f} s "
        f"later; node had {one.node_mib} MiB",
        flush=True,
    )


def _report(sent: int, recovered: Sequence[Recovered], findings: Sequence[Finding]) -> None:
    print(f"{sent:,} readings, {len(recovered)} faults")
    for name in dict.fromkeys(one.fault for one in recovered):
        of_it = [one for one in recovered if one.fault == name]
        parts = {
            "up": [one.up_s for one in of_it],
            "output": [one.output_s for one in of_it],
            "both": [one.total_s for one in of_it],
        }
        words = ", ".join(
            f"{part} {median(values):.1f} s (at most {max(values):.1f})"
            for part, values in parts.items()
        )
        print(f"  {name:24} {len(of_it):3} times: {words}")
    for kind, count in counts(findings).items():
        print(f"{kind.value}: {count}")
        for finding in [one for one in findings if one.kind is kind][:3]:
            print(f"    {finding.message}")
    print("lost 0, duplicated 0, different 0: exact" if not findings else "NOT EXACT")


def _node_mib(made: World) -> int:
    """Memory of the node and its Java process; 0 while it does not run."""
    return (resident_bytes(made.node.pid) or 0) // MIB


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
