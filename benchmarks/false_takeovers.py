"""Takeovers for no reason: two nodes under load, with one busy loop for each core beside them.

    python -m benchmarks.false_takeovers                 # one hour
    python -m benchmarks.false_takeovers --minutes 10

Windows with `active_standby`, so that both nodes execute each batch. No node is killed, so each
suspicion is a false one, and so is each claim. Printed are, each minute and at the end, claims and
suspicions since the begin, the longest time without a new batch, and the load of the machine; then
the suspicions as the nodes have logged them. Exit code 0: no claim, and the fragment still writes.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.processes import computed_s
from benchmarks.recovery import in_world, load_run, node_apart
from benchmarks.soak_feed import DOCUMENT
from pipeline.catalog.records import OwnerRecord
from tests.faults.nodes import Node
from tests.faults.world import OWNER, RunFailedError, Running, World

NETWORK = "loaded"
MODE = "active_standby"
BUSY = "while True: pass"
LEVEL_WITHIN_S = 180.0
POLL_S = 1.0
TOLD_S = 60.0
REMEMBERED = 1_000
"""So many records of each topic; all those of an hour would slow down the reading."""
SUSPECTED = "is suspected:"
"""What a node logs of each suspicion."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What was seen in so many seconds.

    Args:
        seconds: since the begin.
        claims: of the fragment; each raises its epoch.
        suspected: log lines of suspicions.
        oldest_s: the longest time without a new batch.
        nodes: processor time of both nodes, in cores.
    """

    seconds: float
    claims: int
    suspected: tuple[str, ...]
    oldest_s: float
    nodes: float

    def __str__(self) -> str:
        return (
            f"{self.seconds / 60:.1f} minutes: {self.claims} takeovers, {len(self.suspected)} "
            f"suspicions, at most {self.oldest_s:.1f} s without a batch, {self.nodes:.2f} cores in "
            f"the nodes"
        )


def main(arguments: Sequence[str]) -> int:
    """Run, and count."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.false_takeovers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--minutes", type=float, default=60.0, help="how long (%(default)s)")
    add("--rate", type=int, default=5_000, help="readings a second (%(default)s)")
    add("--loops", type=int, default=os.cpu_count(), help="busy loops (%(default)s, one a core)")
    add("--session-timeout", default="10s", help="of ZooKeeper (%(default)s)")
    return in_world("medusa-loaded-", partial(_run, options=parser.parse_args(arguments)))


def _run(made: World, options: argparse.Namespace) -> None:
    nodes = [node_apart(made, name, options.session_timeout) for name in ("first", "second")]
    made.node = nodes[0]
    running = load_run(made, NETWORK, DOCUMENT, options.rate)
    made.rely(MODE)
    _await_level(made, running)
    with busy_loops(options.loops):
        print(f"{options.rate:,} readings a second, {options.loops} busy loops", flush=True)
        counts = _watched(made, running, nodes, options.minutes * 60)
    print(*counts.suspected, sep="\n")
    print(f"{'no ' if not counts.claims else ''}false takeover in {counts}", flush=True)
    made.await_stable(time.time_ns() // 1_000_000)
    running.feed.stop()
    if counts.claims:
        raise RunFailedError(f"{counts.claims} false takeovers")


def _watched(made: World, running: Running, nodes: Sequence[Node], seconds: float) -> Counts:
    """Count for so long; says each minute how it is."""
    (fragment,) = running.plan.fragments
    markers = fragment.names.markers
    first, began_s = _owner(made, running), time.monotonic()
    before = [suspicions_in(node.log.read_text("utf-8")) for node in nodes]
    before_s = sum(computed_s(node.pid) for node in nodes)
    told_s, oldest_s = began_s, 0.0
    while True:
        time.sleep(POLL_S)
        now_s, last = time.monotonic(), running.observer.last(markers)
        if last is not None:
            oldest_s = max(oldest_s, now_s - max(last.at_s, began_s))
        ended = now_s - began_s >= seconds
        if not ended and now_s - told_s < TOLD_S:
            continue
        told_s = now_s
        after = [suspicions_in(node.log.read_text("utf-8")) for node in nodes]
        suspected = [one for a, b in zip(before, after, strict=True) for one in b[len(a) :]]
        used_s = sum(computed_s(node.pid) for node in nodes) - before_s
        claims = _owner(made, running).epoch - first.epoch
        took_s = now_s - began_s
        counts = Counts(took_s, claims, tuple(suspected), oldest_s, used_s / took_s)
        print(f"{counts}, load {os.getloadavg()[0]:.1f}", flush=True)
        running.observer.forget(REMEMBERED)
        if ended:
            return counts


def suspicions_in(log: str) -> list[str]:
    """The lines of a node's log that tell of a suspicion."""
    return [line for line in log.splitlines() if SUSPECTED in line]


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """So many processes that compute without a pause; killed at the end."""
    with ExitStack() as undo:
        for _ in range(count):
            one = undo.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            undo.callback(one.kill)
        yield


def _await_level(made: World, running: Running) -> None:
    (fragment,) = running.plan.fragments

    def is_level() -> bool:
        return any(name == fragment.names.id for name, _ in made.catalog.snapshot(OWNER).level)

    made.wait(is_level, "the secondary is level", LEVEL_WITHIN_S)


def _owner(made: World, running: Running) -> OwnerRecord:
    (fragment,) = running.plan.fragments
    owner = made.catalog.owners.get(fragment.names.network, fragment.name)
    if owner is None:
        raise RunFailedError("the fragment has no owner")
    return owner


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
