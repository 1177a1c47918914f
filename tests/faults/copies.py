"""Faults of nodes whose checkpoints are copied into the checkpoint store."""

import time
from random import Random

from tests.faults.standbys import (
    BUILT_S,
    DEFAULT,
    await_gone,
    await_level,
    followed,
    standby_of_a_suspended_owner,
)
from tests.faults.world import World

PASSIVE = {"mode": "passive_standby", "checkpoint_every": "1s"}
GONE_MAX_S = 8.0


def copy_takes_over(world: World, random: Random) -> None:
    """The owner is killed once its secondary has copies, at any moment of the next ones."""
    old, new = followed(world, PASSIVE)
    await_level(world, new)
    time.sleep(random.uniform(0, 2))
    old.kill()
    await_gone(world, new)


def copy_takes_over_at_any_time(world: World, random: Random) -> None:
    """The owner is killed while the first copies are made, or later."""
    old, new = followed(world, PASSIVE)
    time.sleep(random.uniform(0, BUILT_S))
    old.kill()
    await_gone(world, new)


def copy_of_a_suspended_owner(world: World, random: Random) -> None:
    """The owner is suspended until the secondary has taken over; then it wakes, and copies."""
    standby_of_a_suspended_owner(world, random, PASSIVE)


def copy_is_fetched(world: World, random: Random) -> None:
    """The owner and its secondary are killed together; a third node has only the store."""
    old, new = followed(world, PASSIVE)
    await_level(world, new)
    time.sleep(random.uniform(0, 2))
    old.kill()
    new.kill()
    third = world.new_node()
    third.start()
    world.await_ready(third)
    await_gone(world, third)


def store_is_gone(world: World, random: Random) -> None:
    """The folder of the store is gone for a while, and comes back before a kill or after it."""
    old, new = followed(world, PASSIVE)
    time.sleep(random.uniform(0, BUILT_S))
    hidden = world.store.with_name("hidden-store")
    world.store.rename(hidden)
    time.sleep(random.uniform(0, GONE_MAX_S))
    comes_back_first = random.random() < 0.5
    if comes_back_first:
        hidden.rename(world.store)
    old.kill()
    await_gone(world, new)
    if not comes_back_first:
        hidden.rename(world.store)


def copy_killed(world: World, random: Random) -> None:
    """The secondary is killed while it fetches; the owner goes on as if there had been none."""
    _, new = followed(world, PASSIVE)
    time.sleep(random.uniform(0, BUILT_S))
    new.kill()
    world.rely(DEFAULT)
