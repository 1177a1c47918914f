"""Faults of an owner that is cut off from servers which other nodes reach; of three nodes."""

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from random import Random

from brokers.kafka.cluster import RemoteKafka
from brokers.log_reader import LogReader
from pipeline.event_log.codec import decode
from pipeline.event_log.event import EventKind
from pipeline.names import events_topic
from tests.faults.copies import PASSIVE
from tests.faults.nodes import Node
from tests.faults.outages import BACK_WITHIN_S, TAKEN_OVER_WITHIN_S, owns_all
from tests.faults.relay import Line, Relay
from tests.faults.servers import Server
from tests.faults.standbys import ACTIVE, DEFAULT, LEVEL_WITHIN_S
from tests.faults.world import OWNER, RunFailedError, World

LONGER_MAX_S = 15.0
"""How much longer than until the takeover a cut lasts at most."""
GIVES_UP_MAX_S = 5.0
FENCED_WITHIN_S = 90.0
ENTRIES = 300
"""So many of the event log are read; a fault causes some ten a fragment."""


def owner_cut_from_kafka(world: World, random: Random) -> None:
    """The owner is cut off from Kafka, but not from ZooKeeper, until secondaries have taken over.

    It gives up, as the catalog has other owners. After the cut these are killed, and it claims all.
    """
    _cut(world, random, (Server.KAFKA,))


def owner_cut_from_zookeeper(world: World, random: Random) -> None:
    """The same of ZooKeeper alone: it writes until Kafka fences it, which it notices."""
    _cut(world, random, (Server.ZOOKEEPER,))


def owner_cut_from_both(world: World, random: Random) -> None:
    """The same of Kafka and ZooKeeper. Kafka is back first, and has fenced all that it runs."""
    _cut(world, random, (Server.KAFKA, Server.ZOOKEEPER))


def _cut(world: World, random: Random, servers: Collection[Server]) -> None:
    with _relayed(world) as (old, relays):
        world.node.kill()
        world.node = old
        since_ms = time.time_ns() // 1_000_000
        world.restart()
        world.await_stable(since_ms)
        others = _secondaries(world, random)
        time.sleep(random.uniform(0, 2))
        line = random.choice((Line.FROZEN, Line.CUT))
        for server in servers:
            relays[server].set(line)
        world.node = others[0]
        world.wait(lambda: owns_all(world, *others), f"{old.name} is replaced", TAKEN_OVER_WITHIN_S)
        time.sleep(random.uniform(0, LONGER_MAX_S))
        relays[Server.KAFKA].set(Line.OPEN)
        if Server.ZOOKEEPER in servers:
            world.wait(lambda: _is_fenced(world, old), f"{old.name} is fenced", FENCED_WITHIN_S)
            relays[Server.ZOOKEEPER].set(Line.OPEN)
        _takes_over_again(world, random, old, others)


def _is_fenced(world: World, node: Node) -> bool:
    """Whether Kafka has fenced a node's lane of every fragment, by the event log."""
    log = LogReader(RemoteKafka(world.stack.kafka_bootstrap_servers), BACK_WITHIN_S)
    entries = [decode(one.value, one.topic) for one in log.newest(events_topic(OWNER), ENTRIES)]
    fenced = {
        (one.network, one.fragment)
        for one in entries
        if one.kind == EventKind.FENCED and one.by == f"node {node.name}"
    }
    return fenced >= {
        (running.network, fragment.name)
        for running in world.networks
        for fragment in running.plan.fragments
    }


def _takes_over_again(world: World, random: Random, old: Node, others: tuple[Node, ...]) -> None:
    """The cut is over: the old owner gives up, and can claim what is left."""
    world.node = old

    def is_back() -> bool:
        world.supervise()  # restarts it if it has exited
        return any(record.node == old.name for record in world.catalog.nodes.all())

    world.wait(is_back, f"{old.name} is back", BACK_WITHIN_S)
    time.sleep(random.uniform(0, GIVES_UP_MAX_S))
    world.rely(DEFAULT)
    for other in others:
        other.kill()
    world.wait(lambda: owns_all(world, old), f"all is on {old.name}", TAKEN_OVER_WITHIN_S)
    world.await_stable(time.time_ns() // 1_000_000)
    world.node = others[0]
    world.restart()
    old.kill()


@contextmanager
def _relayed(world: World) -> Iterator[tuple[Node, dict[Server, Relay]]]:
    """A node in the folder of the present one whose connections go through relays."""
    stack, kafka = world.stack, world.servers.cuttable
    with (
        Relay(kafka.port, kafka.advertised_port) as to_kafka,
        Relay(stack.zookeeper_port) as to_zookeeper,
    ):
        further = {
            "kafka.bootstrap_servers": f"127.0.0.1:{to_kafka.port}",
            "zookeeper.connect": stack.zookeeper_connect.replace(
                f":{stack.zookeeper_port}", f":{to_zookeeper.port}"
            ),
        }
        node = world.new_node(world.node.checkpoints, further)
        try:
            yield node, {Server.KAFKA: to_kafka, Server.ZOOKEEPER: to_zookeeper}
        finally:
            node.kill()


def _secondaries(world: World, random: Random) -> tuple[Node, ...]:
    """Start two nodes, and wait until each fragment has a level secondary, for a limited time."""
    others = (world.new_node(), world.new_node())
    for node in others:
        node.start()
    for node in others:
        world.await_ready(node)
    world.rely(random.choice((ACTIVE, PASSIVE)))

    def are_level() -> bool:
        found = world.catalog.snapshot(OWNER)
        wanted = {one.id for one in found.fragments if one.running}
        return wanted <= {name for name, _ in found.level}

    with suppress(RunFailedError):  # on a slow machine a follower may never be level
        world.wait(are_level, "all secondaries are level", LEVEL_WITHIN_S)
    return others
