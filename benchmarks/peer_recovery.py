"""Recovery of Kafka Streams after kill -9 of one of two instances, with and without a standby.

    python -m benchmarks.peer_recovery                       # twice each
    python -m benchmarks.peer_recovery --repeat 5 --session-timeout 6s

Windows of a second, exactly once. Each instance has half of the partitions of each topic; after a
kill those of the killed one pause until the group has noticed. Printed are the longest time without
a result of any partition, less the usual one, and the load of both instances before.
`benchmarks.reliability --query windows --modes kafka_streams kafka_streams_standby` does the same
beside the modes of `reliability`, on the same servers.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from subprocess import Popen

from benchmarks import costs
from benchmarks.arrivals import Arrivals, arrivals_of
from benchmarks.costs import Row
from benchmarks.harness import (
    SOURCE,
    Stack,
    create_topics,
    feed,
    register_reading,
    running_stack,
)
from benchmarks.peers.programs import Job
from benchmarks.peers.running import peer_side, prepare
from benchmarks.processes import kafka_of
from benchmarks.readings import AVERAGE_JSON
from benchmarks.sides import GRACE_MS
from pipeline import durations

SIDE = "kafka-streams"
STANDBYS = {"kafka_streams": 0, "kafka_streams_standby": 1}
"""By the name of the mode: how many standby replicas each state has."""
SETTLE_S = 20.0
FEED_S = 86_400
COST_S = 20.0
USUAL_S = 10.0
"""So long before a kill the usual time between results is measured."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What is measured of each mode.

    Args:
        repeat: number of kills.
        seconds: without a fault.
        session_ms: how long an instance may be silent.
    """

    repeat: int
    seconds: float
    session_ms: int


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
    setting = Setting(options.repeat, COST_S, durations.parse(options.session_timeout))
    with running_stack(node=False) as stack:
        rows = recoveries(stack, kafka_of(stack.pid), tuple(STANDBYS), options.rate, setting)
    print(costs.table(rows))
    return 0


def recoveries(
    stack: Stack, broker: int, modes: Sequence[str], rate: int, setting: Setting
) -> list[Row]:
    """Measure some of `STANDBYS`, each with instances of its own, beside one feed.

    Args:
        stack: the servers; only their addresses are used, its folder and its cache.
        broker: the process of the broker.
        modes: which ones.
        rate: readings a second.
        setting: what is measured.
    """
    prepare(stack, SIDE)
    create_topics(stack, SOURCE)
    schema_id = register_reading(stack)
    sent = feed(stack, "steady", schema_id, rate=rate, seconds=FEED_S, warm_up=0)
    try:
        return [_recovery(stack, broker, mode, schema_id, setting) for mode in modes]
    finally:
        sent.kill()
        sent.wait()


def _recovery(stack: Stack, broker: int, mode: str, schema_id: int, setting: Setting) -> Row:
    target = f"bench-averages-{STANDBYS[mode]}"
    create_topics(stack, target)
    instance = partial(_instance, stack, mode, target, schema_id, setting.session_ms)
    pauses: list[float] = []
    with ExitStack() as undo:
        processes = [undo.enter_context(instance(number)) for number in range(2)]
        arrivals = undo.enter_context(arrivals_of(stack, target))
        time.sleep(SETTLE_S)
        cost = _cost(processes, broker, arrivals, setting.seconds)
        print(f"{mode}: {cost}", flush=True)
        for number in range(setting.repeat):
            time.sleep(SETTLE_S)
            pauses.append(_pause_s(arrivals, processes.pop(0), setting.session_ms))
            print(f"{mode}: {pauses[-1]:.1f} s without a result of a partition", flush=True)
            processes.append(undo.enter_context(instance(2 + number)))
    return Row(mode, cost, tuple(pauses))


@contextmanager
def _instance(
    stack: Stack, mode: str, target: str, schema_id: int, session_ms: int, number: int
) -> Iterator["Popen[str]"]:
    """An instance that runs; that it may be killed is no failure."""
    job = Job(
        "window",
        f"recovered-{STANDBYS[mode]}",
        stack.bootstrap_servers,
        SOURCE,
        (target,),
        schema_id,
        stack.folder / f"peer-{STANDBYS[mode]}-{number}",
        GRACE_MS,
        STANDBYS[mode],
        session_ms,
    )
    with suppress(SystemExit), peer_side(stack, SIDE, job, AVERAGE_JSON) as process:
        yield process


def _cost(
    processes: Sequence["Popen[str]"], broker: int, arrivals: Arrivals, seconds: float
) -> costs.Cost:
    def late_s(since_s: float) -> list[float]:
        return [late_ms / 1_000 for late_ms in arrivals.late_ms(since_s, time.monotonic())]

    return costs.measured([one.pid for one in processes], broker, seconds, late_s)


def _pause_s(arrivals: Arrivals, killed: "Popen[str]", session_ms: int) -> float:
    """Kill an instance; the longest time without a result of a partition, less the usual one."""
    began_s = time.monotonic()
    killed.kill()
    time.sleep(2 * session_ms / 1_000 + 2 * SETTLE_S)
    return arrivals.partition_pause_s(began_s - USUAL_S, began_s, time.monotonic())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
