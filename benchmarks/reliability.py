r"""Recovery time against its cost in normal operation, for each mode of `reliability`.

    python -m benchmarks.reliability                     # three kills in each mode
    python -m benchmarks.reliability --repeat 20 --modes active_standby
    python -m benchmarks.reliability --others idle busy  # busy: it has as much to do itself
    python -m benchmarks.reliability --query windows --modes active_standby kafka_streams_standby
    python -m benchmarks.reliability --query windows --all --others idle busy --repeat 20 \
        --output rows.json                               # everything in one run, about six hours
    python -m benchmarks.reliability_plot rows.json > reliability.svg

Two nodes with checkpoints of their own, Kafka, ZooKeeper and the feed on one machine. In each mode
the load is first measured without a fault: processor time of the nodes and the broker, bytes that
the nodes write, and how long after its event time a result is read. Then the owner is killed again
and again, each time once the other node is ready. Each row of the table at the end is one point of
the diagram of recovery time against cost of Hwang et al., ICDE 2005.

With `busy` a second network, of which no mode is changed, runs on the node that is not the owner;
after each kill it is moved to the node that has come back.

`kafka_streams` and `kafka_streams_standby` measure two instances of Kafka Streams, without and with
a standby replica, by `benchmarks.peer_recovery`: the same load and the same kills, on the same
servers, when Medusa's nodes have ended. They can do `--query windows` alone, with readings of their
own at the same rate. A kill stops only the partitions of the killed instance, so their pause is the
longest one of a partition.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import yaml

from benchmarks import costs, peer_recovery
from benchmarks.arrivals import arrivals_of
from benchmarks.costs import Cost, Row
from benchmarks.harness import Stack
from benchmarks.peer_recovery import STANDBYS
from benchmarks.recovery import (
    SETTLE_S,
    Parts,
    document_of,
    epoch_of,
    in_world,
    load_run,
    node_apart,
    parts_of,
    text_of,
    worst_of,
)
from pipeline import durations
from tests.faults.nodes import Node
from tests.faults.servers import Server
from tests.faults.world import Running, World

QUERIES = {
    "deduplicate": "  sums: {deduplicate: readings, by: [site, value, at], within: KEPT}\n",
    "windows": "",
}
COMPARED = "windows"
"""The query that Kafka Streams computes, too."""
NONE = "upstream_backup"
"""The mode in which no node is prepared."""
STRUCK, BUSY = "struck", "busy"
"""The network whose owner is killed, and one that the other node runs."""
OTHERS = ("idle", BUSY)
"""What the other node has to do beside standing by."""
REMEMBERED = 10_000
"""So many records of each topic before a kill; all those of hours would slow down the reading."""
READY_WITHIN_S = 180.0
MOVED_S = 100
"""How long a move of the other network may take."""
MODES = {
    NONE: NONE,
    "passive_standby 10s": "{mode: passive_standby, checkpoint_every: 10s}",
    "passive_standby 1s": "{mode: passive_standby, checkpoint_every: 1s}",
    "active_standby": "active_standby",
}


def main(arguments: Sequence[str]) -> int:
    """Measure the modes one after the other, on the same servers and nodes."""
    options = _options(arguments)
    return in_world("medusa-reliability-", partial(_run, options=options))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--repeat", type=int, default=3, help="kills in each mode (%(default)s)")
    add("--peer-repeat", type=int, help="the same of Kafka Streams, if another number")
    add("--rate", type=int, default=1_000, help="readings a second (%(default)s)")
    add("--seconds", type=int, default=60, help="without a fault (%(default)s)")
    add("--up", type=int, default=60, help="seconds from a node's start to a kill (%(default)s)")
    add("--kept", default="2m", help="by deduplicate (%(default)s)")
    add("--others", nargs="+", choices=OTHERS, default=OTHERS[:1], help="(%(default)s)")
    add("--query", choices=tuple(QUERIES), default="deduplicate", help="%(default)s")
    modes = (*MODES, *STANDBYS)
    peers = f"{' and '.join(STANDBYS)} need --query {COMPARED}, and a JDK"
    add("--modes", nargs="+", choices=modes, default=tuple(MODES), help=f"{peers}; default: ours")
    add("--all", dest="modes", action="store_const", const=modes, help="all modes")
    add("--session-timeout", default="10s", help="of ZooKeeper (%(default)s)")
    add("--group-timeout", default="45s", help="of Kafka Streams; 45s is its default (%(default)s)")
    add("--output", type=Path, help="a file for all that was measured, as JSON")
    options = parser.parse_args(arguments)
    if options.query != COMPARED and any(mode in STANDBYS for mode in options.modes):
        parser.error(f"Kafka Streams is measured with --query {COMPARED} alone")
    return options


def _run(made: World, options: argparse.Namespace) -> None:
    own = [mode for mode in options.modes if mode in MODES]
    peers = [mode for mode in options.modes if mode in STANDBYS]
    rows = _measure_own(made, own, options) if own else []
    _write(rows, options.output)  # hours of them, before the next ones
    if peers:
        rows += _measure_peers(made, peers, options)
        _write(rows, options.output)
    print(costs.table(rows), flush=True)


def _write(rows: Sequence[Row], output: Path | None) -> None:
    if output is not None:
        output.write_text(costs.to_json(rows), encoding="utf-8")


def _stack(made: World) -> Stack:
    """The servers, as the other benchmarks know them."""
    servers = made.stack
    return Stack(made.folder, servers.kafka_bootstrap_servers, servers.registry_url, servers.cache)


def _measure_peers(made: World, modes: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Kafka Streams, on the same servers."""
    session_ms = durations.parse(options.group_timeout)
    repeat = options.repeat if options.peer_repeat is None else options.peer_repeat
    setting = peer_recovery.Setting(repeat, options.seconds, session_ms)
    broker = made.servers.pid(Server.KAFKA)
    return peer_recovery.recoveries(_stack(made), broker, modes, options.rate, setting)


def _measure_own(made: World, modes: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Medusa's modes, one after the other; its nodes and their load end."""
    nodes = {name: node_apart(made, name, options.session_timeout) for name in ("first", "second")}
    made.node = nodes["first"]
    rows: list[Row] = []
    struck = _running(made, STRUCK, options)
    for others in options.others:
        busy = _running(made, BUSY, options) if others == BUSY else None
        pair = Pair(made, struck, nodes, busy)
        print(f"{options.query}, {options.rate:,} readings a second, {others}", flush=True)
        if QUERIES[options.query]:
            time.sleep(durations.parse(options.kept) / 1_000)  # until the state has its size
        rows += [_measured(pair, mode, options) for mode in modes]
        if busy is not None:
            made.remove(busy)
    struck.feed.stop()
    for node in nodes.values():
        node.stop()
    return rows


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes, one of which is killed again and again.

    Args:
        made: their servers.
        struck: the network of the node that is killed.
        nodes: both, by name.
        busy: the network of the other node; None: it has none.
    """

    made: World
    struck: Running
    nodes: Mapping[str, Node]
    busy: Running | None

    def owner_of(self, running: Running) -> str:
        """The node that runs a network, of one fragment; empty: none does."""
        (fragment,) = running.plan.fragments
        owner = self.made.catalog.owners.get(fragment.names.network, fragment.name)
        return "" if owner is None else owner.node

    def part(self) -> None:
        """Move the network of the other node there, if one node runs both."""
        owner = self.owner_of(self.struck)
        if self.busy is None or self.owner_of(self.busy) != owner:
            return
        (other,) = self.nodes.keys() - {owner}
        (fragment,) = self.busy.plan.fragments
        self.made.medusa("move", f"{BUSY}.{fragment.name}", "--to", other, f"--timeout={MOVED_S}")


def _measured(pair: Pair, mode: str, options: argparse.Namespace) -> Row:
    """One mode, its cost first."""
    pair.made.rely(yaml.safe_load(MODES[mode]), (pair.struck,))
    pair.part()
    time.sleep(SETTLE_S)
    _await_ready(pair, mode)
    cost = _cost(pair, options.seconds)
    name = mode if pair.busy is None else f"{mode}, {BUSY}"
    print(f"{name}: {cost}", flush=True)
    kills: list[Parts] = []
    for _ in range(options.repeat):
        kills.append(_killed(pair, mode, options.up))
        print(f"{name}: {text_of(kills)}; worst {worst_of(kills)}", flush=True)
    return Row(name, cost, tuple(one.gap for one in kills), tuple(one.batch for one in kills))


def _running(made: World, name: str, options: argparse.Namespace) -> Running:
    box = QUERIES[options.query].replace("KEPT", options.kept)
    return load_run(made, name, document_of(box), options.rate)


def _await_ready(pair: Pair, mode: str) -> None:
    """Wait until another node is ready to go on, in each way that it can be."""
    (fragment,) = pair.struck.plan.fragments

    def is_ready() -> bool:
        seen = pair.made.catalog.snapshot(fragment.names.network.participant)
        others = seen.alive - {pair.owner_of(pair.struck)}
        return bool(others) and (
            mode == NONE or any(name == fragment.names.id for name, _ in seen.level)
        )

    pair.made.wait(is_ready, "another node that is ready", READY_WITHIN_S)


def _cost(pair: Pair, seconds: int) -> Cost:
    """Measure the load for so long."""
    pids = [one.pid for one in pair.nodes.values()]
    broker = pair.made.servers.pid(Server.KAFKA)
    topic = pair.struck.plan.fragments[0].output.topic
    with arrivals_of(_stack(pair.made), topic) as arrivals:

        def late_s(since_s: float) -> list[float]:
            return [one / 1_000 for one in arrivals.late_ms(since_s, time.monotonic())]

        return costs.measured(pids, broker, seconds, late_s)


def _killed(pair: Pair, mode: str, up_s: int) -> Parts:
    """Kill the owner once the other node is ready, and start it again."""
    made, (fragment,) = pair.made, pair.struck.plan.fragments
    pair.part()
    _await_ready(pair, mode)
    pair.struck.observer.forget(REMEMBERED)
    time.sleep(up_s)  # a node that has just started has a Java that is slow
    owner = pair.nodes[pair.owner_of(pair.struck)]
    began, epoch = time.monotonic(), epoch_of(pair.struck, fragment)
    owner.kill()
    parts = parts_of(made, pair.struck, fragment, (began, epoch, began))
    owner.start()
    made.await_ready(owner)
    return parts


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
