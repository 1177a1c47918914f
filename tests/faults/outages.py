"""Faults: long server outages, outages for one node, and changes of topics."""

import shutil
import time
from random import Random

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

from brokers.kafka.cluster import RemoteKafka
from brokers.kafka_interface import Isolation
from brokers.log_reader import LogReader
from pipeline.ids import NetworkId, NetworkName, Offset, TopicName
from pipeline.lanes.needed_letters import kept_from
from pipeline.markers.codec import decode_marker
from pipeline.network.model import ExternalStream
from pipeline.planner.plan import Fragment
from tests.faults.history import place_of
from tests.faults.nodes import Node
from tests.faults.observe import read_all
from tests.faults.relay import Line, Relay
from tests.faults.servers import Server
from tests.faults.world import OWNER, RunFailedError, Running, World

DOWN_MAX_S = 6.0
AWAY_S = 75.0
"""Longer than the timeouts of a transaction, its commit and a record's delivery: 60 s each."""
TAKEN_OVER_WITHIN_S = 90.0
BACK_WITHIN_S = 60.0
GROWN_WITHIN_S = 30.0
OBSERVED_WITHIN_S = 30.0


def broker_away(world: World, _: Random) -> None:
    """The broker is down for longer than every delivery timeout; no lane fails."""
    world.servers.kill(Server.KAFKA)
    time.sleep(AWAY_S)
    world.servers.begin(Server.KAFKA)
    world.servers.await_ready(Server.KAFKA)


def zookeeper_cut_for_one(world: World, random: Random) -> None:
    """A node without ZooKeeper keeps writing; another claims its fragments in the same folder."""
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
        world.wait(lambda: owns_all(world, new), f"{new.name} takes all over", TAKEN_OVER_WITHIN_S)
        time.sleep(random.uniform(0, 5))
        relay.set(Line.OPEN)
        world.wait(
            lambda: any(record.node == old.name for record in world.catalog.nodes.all()),
            f"{old.name} finds ZooKeeper again",
            BACK_WITHIN_S,
        )
        time.sleep(random.uniform(2, 5))
        old.kill()


def killed(world: World, random: Random, *servers: Server) -> None:
    """Kill servers, and start them a little later."""
    for server in servers:
        world.servers.kill(server)
    time.sleep(random.uniform(0, DOWN_MAX_S))
    for server in servers:
        world.servers.begin(server)
    for server in servers:
        world.servers.await_ready(server)


def derived_topic_grows(world: World, random: Random) -> None:
    """Add a partition to a topic between two fragments, or, without one, to an output."""
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
    world.grown[topic] += 1
    world.wait(
        lambda: world.admin.describe((topic,))[topic].partitions == count,
        f"topic {topic} has grown",
        GROWN_WITHIN_S,
    )


def dead_letters_expired(world: World, _: Random) -> None:
    """Delete dead letters that no rebuild needs, and then all checkpoints."""
    for running in world.networks:
        for fragment in running.plan.fragments:
            _expire(world, running, fragment)
    world.node.kill()
    shutil.rmtree(world.node.checkpoints)
    world.restart()


def _expire(world: World, running: Running, fragment: Fragment) -> None:
    """Delete the observed dead letters that no rebuild needs, as retention does."""
    topic, markers = fragment.names.dead_letters, fragment.names.markers
    bootstrap = world.stack.kafka_bootstrap_servers
    there = read_all(world.admin, bootstrap, (topic,), Isolation.COMMITTED)
    places = {place_of(record) for record in there}
    world.wait(
        lambda: places <= {place_of(seen.record) for seen in running.observer.seen(topic)},
        f"{topic} is observed",
        OBSERVED_WITHIN_S,
    )
    ends = {place.partition: Offset(place.offset + 1) for place in sorted(places)}
    if not world.admin.await_decided(markers):
        raise RunFailedError(f"{markers}: a transaction stays open")
    (last,) = LogReader(RemoteKafka(bootstrap), OBSERVED_WITHIN_S).newest(markers, 1)
    marker = decode_marker(last.value or b"", f"topic {markers}")
    described = world.admin.describe((topic,))[topic]
    world.admin.delete_records(topic, kept_from(marker, described.topic_id, ends))
    world.trimmed.add(topic)


def owns_all(world: World, *nodes: Node) -> bool:
    """Whether every fragment is owned by one of some nodes."""
    names = {node.name for node in nodes}
    return all(
        (
            owner := world.catalog.owners.get(
                NetworkId(OWNER, NetworkName(running.network)), fragment.name
            )
        )
        is not None
        and owner.node in names
        for running in world.networks
        for fragment in running.plan.fragments
    )
