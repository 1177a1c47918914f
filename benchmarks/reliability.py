"""Recovery time against its cost in normal operation, for each mode of `reliability`.

    python -m benchmarks.reliability                     # three kills in each mode
    python -m benchmarks.reliability --repeat 20 --modes active_standby
    python -m benchmarks.reliability --busy              # the other node has as much to do itself
    python -m benchmarks.reliability --query windows     # little state
    python -m benchmarks.reliability --query windows --modes active_standby kafka_streams_standby

Two nodes with checkpoints of their own, Kafka, ZooKeeper and the feed on one machine. In each mode
the load is first measured without a fault: processor time of the nodes and the broker, bytes that
the nodes write, and how long after its event time a result is read. Then the owner is killed again
and again, each time once the other node is ready. Each row of the table at the end is one point of
the diagram of recovery time against cost of Hwang et al., ICDE 2005.

`kafka_streams` and `kafka_streams_standby` measure two instances of Kafka Streams, without and with
a standby replica, by `benchmarks.peer_recovery`: the same load and the same kills, on the same
servers, when Medusa's nodes have ended. They can do `--query windows` alone, with readings of their
own at the same rate. A kill stops only the partitions of the killed instance, so their pause is the
longest one of a partition.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import yaml

from benchmarks import costs, peer_recovery
from benchmarks.costs import Cost, Row
from benchmarks.harness import Stack
from benchmarks.peer_recovery import STANDBYS
from benchmarks.recovery import (
    SETTLE_S,
    Parts,
    document_of,
    epoch_of,
    in_world,
    node_of,
    parts_of,
    text_of,
    worst_of,
)
from benchmarks.soak_feed import SCHEMA, Load
from pipeline import durations
from pipeline.planner.plan import Plan
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
READY_WITHIN_S = 180.0
MODES = {
    NONE: NONE,
    "passive_standby 10s": "{mode: passive_standby, checkpoint_every: 10s}",
    "passive_standby 1s": "{mode: passive_standby, checkpoint_every: 1s}",
    "active_standby": "active_standby",
}


def main(arguments: Sequence[str]) -> int:
    """Measure the modes one after the other, on the same servers and nodes."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.reliability",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=3, help="kills in each mode (%(default)s)")
    parser.add_argument("--rate", type=int, default=1_000, help="readings a second (%(default)s)")
    parser.add_argument("--seconds", type=int, default=60, help="without a fault (%(default)s)")
    parser.add_argument(
        "--up",
        type=int,
        default=60,
        help="seconds between a start of a node and the next kill (%(default)s)",
    )
    parser.add_argument("--kept", default="2m", help="by deduplicate (%(default)s)")
    parser.add_argument("--busy", action="store_true", help="the other node has work of its own")
    parser.add_argument(
        "--query", choices=tuple(QUERIES), default="deduplicate", help="%(default)s"
    )
    parser.add_argument(
        "--modes",
        nargs="+",
        choices=(*MODES, *STANDBYS),
        default=tuple(MODES),
        help=f"{' and '.join(STANDBYS)} need --query windows, and a JDK (those of Medusa)",
    )
    parser.add_argument("--session-timeout", default="10s", help="of ZooKeeper (%(default)s)")
    parser.add_argument(
        "--group-timeout", default="45s", help="of Kafka Streams; 45s is its default (%(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.query != COMPARED and any(mode in STANDBYS for mode in options.modes):
        parser.error(f"Kafka Streams is measured with --query {COMPARED} alone")
    return in_world("medusa-reliability-", partial(_run, options=options))


def _run(made: World, options: argparse.Namespace) -> None:
    own = [mode for mode in options.modes if mode in MODES]
    peers = [mode for mode in options.modes if mode in STANDBYS]
    rows = _measure_own(made, own, options) if own else []
    if peers:
        rows += _measure_peers(made, peers, options)
    print(costs.table(rows), flush=True)


def _measure_peers(made: World, modes: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Kafka Streams, on the same servers."""
    servers = made.stack
    stack = Stack(made.folder, servers.kafka_bootstrap_servers, servers.registry_url, servers.cache)
    session_ms = durations.parse(options.group_timeout)
    setting = peer_recovery.Setting(options.repeat, options.seconds, session_ms)
    broker = made.servers.pid(Server.KAFKA)
    return peer_recovery.recoveries(stack, broker, modes, options.rate, setting)


def _measure_own(made: World, modes: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Medusa's modes, one after the other; its nodes and their load end."""
    nodes = {name: _started(made, name, options.session_timeout) for name in ("first", "second")}
    made.node = nodes["first"]
    busy = ", each node with a network" if options.busy else ""
    print(f"{options.query}, {options.rate:,} readings a second{busy}", flush=True)
    document = document_of(QUERIES[options.query].replace("KEPT", options.kept))
    loads = {name: _load(made, name, options.rate) for name in (STRUCK, *([BUSY] * options.busy))}
    found = [made.run(name, _deployed(made, name, document), load) for name, load in loads.items()]
    made.await_stable(time.time_ns() // 1_000_000)
    time.sleep(durations.parse(options.kept) / 1_000)  # until the state has its size
    rows = []
    for mode in modes:
        made.rely(yaml.safe_load(MODES[mode]))
        time.sleep(SETTLE_S)
        _await_ready(made, found[0], mode)
        cost = _cost(made, found[0], nodes.values(), options.seconds)
        print(f"{mode}: {cost}", flush=True)
        kills = list(_kills(made, found[0], nodes, mode, options))
        if kills:
            print(f"{mode}: {text_of(kills)}; worst {worst_of(kills)}", flush=True)
        rows.append(Row(mode, cost, tuple(one.gap for one in kills)))
    for load in loads.values():
        load.stop()
    for node in nodes.values():
        node.stop()
    return rows


def _started(made: World, name: str, session_timeout: str) -> Node:
    node = node_of(made, name, session_timeout)
    node.checkpoints = made.folder / f"checkpoints-{name}"
    node.start()
    made.await_ready(node)
    return node


def _load(made: World, name: str, rate: int) -> Load:
    schema_id = made.registry.register(f"{name}-readings-value", SCHEMA)
    return Load(made.stack.kafka_bootstrap_servers, f"{name}-readings", schema_id, rate)


def _deployed(made: World, name: str, document: str) -> Plan:
    return made.deploy(name, document.replace("{name}", name), {"readings.avsc": SCHEMA})


def _await_ready(made: World, running: Running, mode: str) -> None:
    """Wait until another node is ready to go on, in each way that it can be."""
    (fragment,) = running.plan.fragments
    network = fragment.names.network

    def is_ready() -> bool:
        seen = made.catalog.snapshot(network.participant)
        owner = made.catalog.owners.get(network, fragment.name)
        others = seen.alive - {owner.node if owner else None}
        return bool(others) and (
            mode == NONE or any(name == fragment.names.id for name, _ in seen.level)
        )

    made.wait(is_ready, "another node that is ready", READY_WITHIN_S)


def _cost(made: World, running: Running, nodes: Iterable[Node], seconds: int) -> Cost:
    """Measure the load for so long."""
    topic = running.plan.fragments[0].output.topic

    def late_s(since_s: float) -> list[float]:
        offset_s = time.time() - time.monotonic()
        return [
            one.at_s + offset_s - one.record.timestamp_ms / 1_000
            for one in running.observer.seen(topic)
            if one.at_s > since_s
        ]

    pids = [one.pid for one in nodes]
    return costs.measured(pids, made.servers.pid(Server.KAFKA), seconds, late_s)


def _kills(
    made: World,
    running: Running,
    nodes: Mapping[str, Node],
    mode: str,
    options: argparse.Namespace,
) -> Iterator[Parts]:
    """Kill the owner again and again."""
    up_s: int = options.up
    (fragment,) = running.plan.fragments
    for _ in range(options.repeat):
        _await_ready(made, running, mode)
        time.sleep(up_s)  # a node that has just started has a Java that is slow
        owner = made.catalog.owners.get(fragment.names.network, fragment.name)
        assert owner is not None  # noqa: S101 - it runs
        began, epoch = time.monotonic(), epoch_of(running, fragment)
        nodes[owner.node].kill()
        yield parts_of(made, running, fragment, (began, epoch, began))
        nodes[owner.node].start()
        made.await_ready(nodes[owner.node])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
