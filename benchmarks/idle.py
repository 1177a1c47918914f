"""CPU of an idle network: after records had flowed, none comes any more.

    python -m benchmarks.idle                                  # five fragments, ten minutes
    python -m benchmarks.idle --fragments 50 --silence idle

Printed is the CPU time in percent of one core, of Spark's Java process, the node, Kafka, and all
other processes of the stack, for each minute of the silence and over all of it. The fragments are a
filter, windows, windows over those, a join and a deduplication, as often as asked for.
"""

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.harness import (
    SOURCE,
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
from benchmarks.processes import computed_s, java_of, kafka_of, node_of, own_s

OTHER = "bench-other-readings"
PARTS = ("Java", "node", "Kafka", "others", "all")
MINUTE_S = 60.0
KINDS: Mapping[str, Mapping[str, object]] = {
    "warm": {"filter": "readings", "where": "celsius > 0"},
    "sums": {
        "aggregate": "readings",
        "window": "1s",
        "by": ["site"],
        "compute": {"n": "count(*)"},
    },
    "totals": {
        "aggregate": "sums{}",
        "window": "5s",
        "by": ["site"],
        "compute": {"total": "sum(n)"},
    },
    "pairs": {
        "join": {"left": "readings", "right": "others", "on": ["sensor"], "within": "2s"},
        "select": {"sensor": "left.sensor", "warmer": "left.celsius - right.celsius"},
    },
    "once": {"deduplicate": "others", "by": ["sensor"], "within": "2s"},
}
"""Box → its definition; `{}` is replaced by the number of the box."""


def document(name: str, fragments: int, silence: str) -> str:
    """A network with so many fragments, in JSON, which is YAML."""
    streams = {
        stream: {
            "topic": topic,
            "schema": "schemas/reading.avsc",
            "event_time": "at",
            "lateness": "1s",
            "idle_after": "10s",
            "silence": silence,
            "start": "latest",
        }
        for stream, topic in (("readings", SOURCE), ("others", OTHER))
    }
    kinds = list(KINDS)
    boxes = {
        f"{kind}{number}": json.loads(json.dumps(KINDS[kind]).replace("{}", str(number)))
        for index in range(fragments)
        for kind, number in ((kinds[index % len(kinds)], index // len(kinds)),)
    }
    outputs = {box: {"topic": f"{name}-{box}", "partitions": 4} for box in boxes}
    network = {"network": name, "streams": streams, "boxes": boxes, "outputs": outputs}
    return json.dumps(network)


def cpu_s(stack: Stack) -> dict[str, float]:
    """CPU seconds so far, of each part."""
    found = {
        "Java": own_s(java_of(stack.pid)),
        "node": own_s(node_of(stack.pid)),
        "Kafka": own_s(kafka_of(stack.pid)),
    }
    total = computed_s(stack.pid)
    return {**found, "others": total - sum(found.values()), "all": total}


def percent(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> list[float]:
    """CPU time between two measurements, in percent of one core, in the order of `PARTS`."""
    return [100 * (after[part] - before[part]) / seconds for part in PARTS]


def measure(stack: Stack, silence: str, options: argparse.Namespace, schema_id: int) -> list[float]:
    """One silence; prints each minute of it, returns the whole."""
    name = f"bench_idle_{silence}"
    (stack.folder / f"{name}.yaml").write_text(document(name, options.fragments, silence))
    stack.medusa("deploy", "-f", f"{name}.yaml")
    wait_for(lambda: all_run(stack, name), STARTED_WITHIN_S, f"network {name}")
    fed(
        feed(
            stack,
            "steady",
            schema_id,
            (SOURCE, OTHER),
            rate=options.rate,
            warm_up=0,
            seconds=options.feed_seconds,
        )
    )
    began_s, began = time.monotonic(), cpu_s(stack)
    before_s, before = began_s, began
    for minute in range(options.minutes):
        time.sleep(max(0.0, began_s + (minute + 1) * MINUTE_S - time.monotonic()))
        now_s, now = time.monotonic(), cpu_s(stack)
        print(_line(f"{silence}, minute {minute + 1}", percent(before, now, now_s - before_s)))
        before_s, before = now_s, now
    stack.medusa("undeploy", name)
    return percent(began, before, before_s - began_s)


def _line(name: str, values: Sequence[float]) -> str:
    return f"{name:22}" + "".join(f"{value:9.1f}" for value in values)


def main(arguments: list[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--fragments", type=int, default=5, help="how many (%(default)s)")
    add("--minutes", type=int, default=10, help="of silence (%(default)s)")
    add("--feed-seconds", type=float, default=60.0, help="of records before it (%(default)s)")
    add("--rate", type=float, default=200.0, help="records a second (%(default)s)")
    add("--silence", nargs="+", default=("idle", "missing"), choices=("idle", "missing"))
    options = parser.parse_args(arguments)
    print(f"{'percent of a core':22}" + "".join(f"{part:>9}" for part in PARTS), flush=True)
    with running_stack() as stack:
        create_topics(stack, SOURCE, OTHER)
        schema_id = register_reading(stack)
        for silence in options.silence:
            print(_line(f"{silence}, all", measure(stack, silence, options, schema_id)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
