"""Faults while all fragments move from the node to another one."""

import time
from random import Random

from pipeline.ids import NodeId
from pipeline.operations.drain import Drain
from pipeline.system_clock import SystemClock
from tests.faults.nodes import Node
from tests.faults.outages import killed, owns_all
from tests.faults.servers import Server
from tests.faults.world import OWNER, World

MOVES_WITHIN_S = 60.0
"""The time limit of the moves; then the fragments go without them."""
GONE_WITHIN_S = 150.0
FOLLOWED_S = 15.0
"""Approximate time from the request until the last fragment has moved."""


def moved(world: World, _: Random) -> None:
    """All fragments move to another node; then the first one stops, as in an upgrade."""
    old, new = _moving(world)
    _await_gone(world, new)
    old.stop()
    _undrain(world, old)


def moved_owner_killed(world: World, random: Random) -> None:
    """The owner is killed while its fragments move."""
    old, new = _moving(world)
    time.sleep(random.uniform(0, FOLLOWED_S))
    old.kill()
    world.node = new
    _undrain(world, old)


def moved_target_killed(world: World, random: Random) -> None:
    """The target is killed while fragments move to it; some may be there already.

    The owner has all of them again, although it is drained: no other node is up.
    """
    old, new = _moving(world)
    time.sleep(random.uniform(0, FOLLOWED_S))
    new.kill()
    world.wait(lambda: owns_all(world, old), f"all is on {old.name}", GONE_WITHIN_S)
    _undrain(world, old)


def moved_both_killed(world: World, random: Random) -> None:
    """Both are killed while fragments move; the owner comes back."""
    old, new = _moving(world)
    time.sleep(random.uniform(0, FOLLOWED_S))
    for node in random.sample((old, new), 2):
        node.kill()
    _undrain(world, old)
    world.restart()


def moved_servers_killed(world: World, random: Random) -> None:
    """Kafka, ZooKeeper or both are killed while fragments move."""
    old, new = _moving(world)
    time.sleep(random.uniform(0, FOLLOWED_S))
    servers = random.sample((Server.KAFKA, Server.ZOOKEEPER), random.randint(1, 2))
    killed(world, random, *servers)
    _await_gone(world, new)
    old.kill()
    _undrain(world, old)


def _moving(world: World) -> tuple[Node, Node]:
    """Start another node, and drain the one that runs the networks; returns both."""
    old, new = world.node, world.new_node()
    new.start()
    world.await_ready(new)
    Drain(NodeId(old.name), OWNER, world.catalog, SystemClock()).begin(MOVES_WITHIN_S)
    return old, new


def _await_gone(world: World, new: Node) -> None:
    """Wait until the new node has all fragments."""
    world.wait(lambda: owns_all(world, new), f"all is on {new.name}", GONE_WITHIN_S)
    world.node = new


def _undrain(world: World, old: Node) -> None:
    """Its name is not used again, or it is to run the networks again."""

    def done() -> bool:
        world.catalog.drains.undrain(OWNER, NodeId(old.name))
        return True

    world.wait(done, f"{old.name} is no longer drained", GONE_WITHIN_S)
