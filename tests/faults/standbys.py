"""Faults of a node whose fragments another one follows as a secondary, and of that one."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from random import Random

from tests.faults.nodes import Node
from tests.faults.outages import killed, owns_all
from tests.faults.servers import Server
from tests.faults.world import OWNER, RunFailedError, World

ACTIVE, DEFAULT = "active_standby", "upstream_backup"
OTHER_MODES: Sequence[str | Mapping[str, str]] = (
    DEFAULT,
    "passive_standby",
    {"mode": ACTIVE, "secondaries": "2"},
)
LEVEL_WITHIN_S = 120.0
GONE_WITHIN_S = 90.0
BUILT_S = 10.0
"""Approximate time in which followers build their states."""


def standby_takes_over(world: World, _: Random) -> None:
    """The owner is killed once all followers are level."""
    old, new = followed(world)
    await_level(world, new)
    old.kill()
    await_gone(world, new)


def standby_takes_over_at_any_time(world: World, random: Random) -> None:
    """The owner is killed while followers build their states, or later."""
    old, new = followed(world)
    time.sleep(random.uniform(0, 2 * BUILT_S))
    old.kill()
    await_gone(world, new)


def standby_killed(world: World, random: Random) -> None:
    """The secondary is killed; the owner goes on as if there had been none."""
    _, new = followed(world)
    time.sleep(random.uniform(0, 2 * BUILT_S))
    new.kill()
    world.rely(DEFAULT)


def standby_killed_in_takeover(world: World, random: Random) -> None:
    """The owner is killed, then the secondary while it takes over; the owner comes back."""
    old, new = followed(world)
    await_level(world, new)
    old.kill()
    time.sleep(random.uniform(0, 3))
    new.kill()
    world.rely(DEFAULT)
    world.restart()


def mode_changed_in_takeover(world: World, random: Random) -> None:
    """The owner is killed, and the mode of all networks is changed while the secondary starts."""
    old, new = followed(world)
    await_level(world, new)
    old.kill()
    time.sleep(random.uniform(0, 3))
    world.rely(random.choice(OTHER_MODES))
    await_gone(world, new)


def standby_killed_with_its_owner(world: World, random: Random) -> None:
    """Both are killed at once while a third node runs; it builds the states from the log."""
    old, new = followed(world)
    await_level(world, new)
    third = world.new_node()
    third.start()
    world.await_ready(third)
    time.sleep(random.uniform(0, BUILT_S))
    old.kill()
    new.kill()
    await_gone(world, third)


def standby_disk_full(world: World, random: Random) -> None:
    """All file writes of the secondary fail for a while; the owner goes on, and is killed then.

    The follower has removed its files, and rests, or builds its state again.
    """
    old, new = followed(world)
    await_level(world, new)
    new.fill_disk()
    try:
        time.sleep(random.uniform(1, BUILT_S))
    finally:
        new.empty_disk()
    old.kill()
    await_gone(world, new)


def standby_of_a_suspended_owner(
    world: World, random: Random, reliability: str | Mapping[str, str] = ACTIVE
) -> None:
    """The owner is suspended until the secondary has taken over; then it wakes, and is fenced."""
    old, new = followed(world, reliability)
    await_level(world, new)
    old.pause()
    await_gone(world, new)
    time.sleep(random.uniform(0, 3))
    old.resume()
    time.sleep(random.uniform(1, 5))
    old.kill()


def standby_while_servers_are_killed(world: World, random: Random) -> None:
    """Kafka, ZooKeeper or both are killed, then the owner while they start."""
    old, new = followed(world)
    await_level(world, new)
    servers = random.sample((Server.KAFKA, Server.ZOOKEEPER), random.randint(1, 2))
    killed(world, random, *servers)
    time.sleep(random.uniform(0, 3))
    old.kill()
    await_gone(world, new)


def followed(world: World, reliability: str | Mapping[str, str] = ACTIVE) -> tuple[Node, Node]:
    """Start another node that is the secondary of everything; returns the owner and it."""
    old, new = world.node, world.new_node()
    new.start()
    world.await_ready(new)
    world.rely(reliability)
    return old, new


def await_level(world: World, new: Node) -> None:
    """Wait until a node is level with every fragment, for a limited time."""

    def is_level() -> bool:
        found = world.catalog.snapshot(OWNER)
        wanted = {(one.id, new.name) for one in found.fragments if one.running}
        return wanted <= {(name, str(node)) for name, node in found.level}

    with suppress(RunFailedError):  # on a slow machine a follower may never be level
        world.wait(is_level, f"{new.name} is level", LEVEL_WITHIN_S)


def await_gone(world: World, new: Node) -> None:
    """Wait until the secondary has all fragments; it runs the networks from now on."""
    world.wait(lambda: owns_all(world, new), f"all is on {new.name}", GONE_WITHIN_S)
    world.node = new
    world.rely(DEFAULT)
