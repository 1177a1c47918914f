"""Recovery of Kafka Streams after kill -9 of one of two instances, with and without a standby.

    python -m benchmarks.peer_recovery                       # twice each
    python -m benchmarks.peer_recovery --repeat 5 --session-timeout 6s

Windows of a second, exactly once. Each instance has half of the partitions of each topic; after a
kill those of the killed one pause until the group has noticed. Printed are the longest time without
a result of any partition, less the usual one, and the processor time of both instances before, to
be compared with `benchmarks.reliability --query windows`.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from subprocess import Popen

from confluent_kafka import Consumer

from benchmarks.harness import (
    PARTITIONS,
    SOURCE,
    Stack,
    create_topics,
    feed,
    median,
    reader,
    register_reading,
    running_stack,
)
from benchmarks.peers.programs import Job
from benchmarks.peers.running import peer_side, prepare
from benchmarks.processes import computed_s
from benchmarks.readings import AVERAGE_JSON
from benchmarks.sides import GRACE_MS
from pipeline import durations

SIDE = "kafka-streams"
SETTLE_S = 20.0
FEED_S = 86_400
COST_S = 20.0
QUIET_S = 5.0
"""So long after a kill there has to be a result of every partition again and again."""


def main(arguments: Sequence[str]) -> int:
    """Measure without and with a standby, on the same servers."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peer_recovery",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=2, help="kills of each kind (%(default)s)")
    parser.add_argument("--rate", type=int, default=1_000, help="readings a second (%(default)s)")
    parser.add_argument(
        "--session-timeout", default="45s", help="of the group; 45s is the default (%(default)s)"
    )
    options = parser.parse_args(arguments)
    with running_stack(node=False) as stack:
        prepare(stack, SIDE)
        create_topics(stack, SOURCE)
        schema_id = register_reading(stack)
        sent = feed(stack, "steady", schema_id, rate=options.rate, seconds=FEED_S, warm_up=0)
        try:
            for standbys in (0, 1):
                _measure(stack, schema_id, standbys, options)
        finally:
            sent.kill()
            sent.wait()
    return 0


def _measure(stack: Stack, schema_id: int, standbys: int, options: argparse.Namespace) -> None:
    target = f"bench-averages-{standbys}"
    create_topics(stack, target)

    def job(number: int) -> Job:
        return Job(
            "window",
            f"recovered-{standbys}",
            stack.bootstrap_servers,
            SOURCE,
            (target,),
            schema_id,
            stack.folder / f"peer-{standbys}-{number}",
            GRACE_MS,
            standbys,
            durations.parse(options.session_timeout),
        )

    found = []
    with ExitStack() as undo:
        processes = [undo.enter_context(_instance(stack, job(number))) for number in range(2)]
        cost = _cost(processes)
        for number in range(options.repeat):
            time.sleep(SETTLE_S)
            killed = processes.pop(0)
            found.append(_gap(stack, target, killed, durations.parse(options.session_timeout)))
            print(f"{standbys} standbys: {found[-1]:.1f} s without a result", flush=True)
            processes.append(undo.enter_context(_instance(stack, job(2 + number))))
    print(
        f"{standbys} standbys: median {median(found):.1f} s, worst {max(found):.1f} s; "
        f"{cost * 100:.0f} % of a core before",
        flush=True,
    )


@contextmanager
def _instance(stack: Stack, job: Job) -> Iterator["Popen[str]"]:
    """An instance that runs; that it may be killed is no failure."""
    with suppress(SystemExit), peer_side(stack, SIDE, job, AVERAGE_JSON) as process:
        yield process


def _cost(processes: Sequence["Popen[str]"]) -> float:
    """Processor seconds of the instances in a second."""
    time.sleep(SETTLE_S)
    before = sum(computed_s(one.pid) for one in processes)
    time.sleep(COST_S)
    return (sum(computed_s(one.pid) for one in processes) - before) / COST_S


def _gap(stack: Stack, target: str, killed: "Popen[str]", session_ms: int) -> float:
    """Kill an instance; the longest time without a result of a partition, less the usual one."""
    consumer = reader(stack, target, at_end=True)
    seen: list[list[float]] = [[] for _ in range(PARTITIONS)]
    try:
        _read(consumer, seen, time.monotonic() + 2 * QUIET_S)
        usual = max(b - a for times in seen for a, b in pairwise(times))
        killed.kill()
        ends = time.monotonic() + 2 * session_ms / 1_000 + 2 * SETTLE_S
        _read(consumer, seen, ends)
    finally:
        consumer.close()
    return max(b - a for times in seen for a, b in pairwise(times)) - usual


def _read(consumer: Consumer, seen: list[list[float]], until_s: float) -> None:
    """Note when results of each partition are read."""
    while time.monotonic() < until_s:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            seen[message.partition() or 0].append(time.monotonic())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
