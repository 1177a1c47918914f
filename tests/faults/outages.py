"""Faults of servers that last: longer than every timeout, or for one node alone."""

import time
from random import Random

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from pipeline.ids import NetworkName, TopicName
from pipeline.network.model import ExternalStream
from tests.faults.nodes import Node
from tests.faults.relay import Line, Relay
from tests.faults.servers import Server
from tests.faults.world import World

AWAY_S = 75.0
"""Longer than what a transaction, its commit and a record's delivery are given: 60 s each."""
TAKEN_OVER_WITHIN_S = 90.0
BACK_WITHIN_S = 60.0
GROWN_WITHIN_S = 30.0


def broker_away(world: World, _: Random) -> None:
    """The broker is down for longer than every delivery timeout; no lane gives up."""
    world.servers.kill(Server.KAFKA)
    time.sleep(AWAY_S)
    world.servers.begin(Server.KAFKA)
    world.servers.await_ready(Server.KAFKA)


def zookeeper_cut_for_one(world: World, random: Random) -> None:
    """A node writes on without ZooKeeper; another takes its fragments over from the same folder."""
    stack, checkpoints = world.stack, world.node.checkpoints
    with Relay(stack.zookeeper_port) as relay:
        connect = stack.zookeeper_connect.replace(f":{stack.zookeeper_port}", f":{relay.port}")
        old = world.new_node(checkpoints, {"zookeeper.connect": connect})
        new = world.new_node(checkpoints)
        world.node.kill()
        world.node = old
        since_ms = time.time_ns() // 1_000_000
        world.restart()
        world.await_stable(since_ms)
        new.start()
        world.await_ready(new)
        time.sleep(random.uniform(0, 2))
        relay.set(random.choice((Line.FROZEN, Line.CUT)))
        world.node = new
        world.wait(lambda: _owns_all(world, new), f"{new.name} takes all over", TAKEN_OVER_WITHIN_S)
        time.sleep(random.uniform(0, 5))
        relay.set(Line.OPEN)
        world.wait(
            lambda: any(record.node == old.name for record in world.catalog.nodes()),
            f"{old.name} finds ZooKeeper again",
            BACK_WITHIN_S,
        )
        time.sleep(random.uniform(2, 5))
        old.kill()


def derived_topic_grows(world: World, random: Random) -> None:
    """A topic between two fragments gets one more partition; without one, an output does."""
    read = {
        stream.topic
        for running in world.networks
        for fragment in running.plan.fragments
        for stream in fragment.inputs
        if not isinstance(stream, ExternalStream)
    }
    written = {f.output.topic for running in world.networks for f in running.plan.fragments}
    topic = TopicName(random.choice(sorted(read or written)))
    count = world.admin.describe((topic,))[topic].partitions + 1
    admin = AdminClient({"bootstrap.servers": world.stack.kafka_bootstrap_servers})
    (grown,) = admin.create_partitions([NewPartitions(topic, count)]).values()
    grown.result(GROWN_WITHIN_S)
    world.wait(
        lambda: world.admin.describe((topic,))[topic].partitions == count,
        f"topic {topic} has grown",
        GROWN_WITHIN_S,
    )


def _owns_all(world: World, node: Node) -> bool:
    return all(
        (owner := world.catalog.owner(NetworkName(running.network), fragment.name)) is not None
        and owner.node == node.name
        for running in world.networks
        for fragment in running.plan.fragments
    )
