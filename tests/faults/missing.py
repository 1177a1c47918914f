"""Faults of an input of which a partition gets no records for a while, as if it were cut off.

Its producers keep the records back, and send them afterwards. Fragments with an availability bound
publish tentative results meanwhile, if it lasts long enough; the others wait.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random

from pipeline.ids import TopicName
from tests.faults.feed import Feeder
from tests.faults.outages import TAKEN_OVER_WITHIN_S, owns_all
from tests.faults.world import RunFailedError, World

PARTITIONS = 2
"""Of each external topic at least, see `Stream`."""
AWAY_MAX_S = 8.0
"""About the time until a fork publishes: it may end before, meanwhile, or just after."""
TENTATIVE_WITHIN_S = 120.0
GOES_ON_MAX_S = 5.0


def input_missing(world: World, random: Random) -> None:
    """A partition of each input gets no records for a while; the others go on."""
    with _missing(world, random):
        _goes_on(world, random)


def input_missing_owner_killed(world: World, random: Random) -> None:
    """The same; meanwhile the owner is killed, and starts again before or after the end of it."""
    with _missing(world, random):
        _goes_on(world, random)
        world.node.kill()
        if random.random() < 1 / 2:
            world.restart()
            _goes_on(world, random)
    if not world.node.running:
        world.restart()


def input_missing_taken_over(world: World, random: Random) -> None:
    """The same; meanwhile the owner is killed, and another node takes over."""
    old, new = world.node, world.new_node(random.choice((None, world.node.checkpoints)))
    new.start()
    world.await_ready(new)
    with _missing(world, random):
        _goes_on(world, random)
        old.kill()
        world.node = new
        if random.random() < 1 / 2:
            world.wait(
                lambda: owns_all(world, new), f"{new.name} takes all over", TAKEN_OVER_WITHIN_S
            )
            _goes_on(world, random)
    world.wait(lambda: owns_all(world, new), f"{new.name} takes all over", TAKEN_OVER_WITHIN_S)


def _goes_on(world: World, random: Random) -> None:
    """A short time passes; or as much as it takes until all that may are publishing."""
    if random.random() < 1 / 2:
        time.sleep(random.uniform(0, AWAY_MAX_S))
        return
    before = _tentative(world)

    def come() -> bool:
        return all(count > before[topic] for topic, count in _tentative(world).items())

    world.wait(come, "tentative results come", TENTATIVE_WITHIN_S)
    time.sleep(random.uniform(0, GOES_ON_MAX_S))


def _tentative(world: World) -> Mapping[TopicName, int]:
    """The number of records in each tentative topic."""
    return {
        topic: len(running.observer.seen(topic))
        for running in world.networks
        for fragment in running.plan.fragments
        if (topic := fragment.tentative_topic) is not None
    }


@contextmanager
def _missing(world: World, random: Random) -> Iterator[None]:
    """No record of one partition is sent during the block."""
    feeds = [one.feed for one in world.networks if isinstance(one.feed, Feeder)]
    if not feeds:
        raise RunFailedError("no feed can keep back a partition")
    partition = random.randrange(PARTITIONS)
    for feed in feeds:
        feed.keep_back(partition)
    try:
        yield
    finally:
        for feed in feeds:
            feed.send_kept()
