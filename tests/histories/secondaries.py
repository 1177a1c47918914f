"""Secondaries of fragments, as checks of a history."""

from collections.abc import Iterator, Mapping

from pipeline.agent.state import Running
from pipeline.catalog.records import Standby
from pipeline.ids import Epoch, FragmentId, NodeId, RunNumber, TopicName
from tests.histories.node import OWNER
from tests.histories.world import World

Run = tuple[RunNumber, Epoch]
Topics = Mapping[FragmentId, Mapping[TopicName, str]]
"""Ids of each fragment's topics, by the catalog."""


def running(world: World) -> Iterator[tuple[tuple[str, FragmentId], Run]]:
    """The lanes that run, each with the number of its run and its epoch."""
    for name, node in world.nodes.items():
        for fragment, lane in node.lanes.items():
            if isinstance(lane.phase, Running):
                yield (name, fragment), (lane.run, lane.epoch)


def topics(world: World) -> Topics:
    """The topics that the catalog has of each fragment."""
    return {one.id: one.topic_ids for one in world.catalog.snapshot(OWNER).fragments}


def restarted(
    world: World, before: Mapping[tuple[str, FragmentId], Run], known: Topics
) -> Iterator[str]:
    """The lanes that ran before, and no longer run as they did.

    Not those of which the catalog has got a topic back that it had forgotten, since they read it.
    """
    now, has = dict(running(world)), topics(world)
    for lane, was in before.items():
        if now.get(lane) != was and has.get(lane[1]) == known.get(lane[1]):
            name, fragment = lane
            yield f"{fragment} on {name} had run and epoch {was}, and has {now.get(lane)}"


def others(world: World) -> Iterator[str]:
    """The fragments with other followers than the catalog says.

    Or with one that is not level although its owner runs.
    """
    found = world.catalog.snapshot(OWNER)
    there: dict[FragmentId, dict[NodeId, Standby]] = {}
    for node, standbys in found.standbys.items():
        for one in standbys:
            there.setdefault(one.id, {})[node] = one
    meant, runs = found.secondaries(), {fragment for (_, fragment), _ in running(world)}
    for fragment in sorted(meant.keys() | there.keys()):
        followers, nodes = there.get(fragment, {}), meant.get(fragment, ())
        if set(nodes) != followers.keys():
            yield f"{fragment} is followed by {sorted(followers)}, not {sorted(nodes)}"
        for node, one in sorted(followers.items()):
            if fragment in runs and not one.is_level:
                yield f"the follower of {fragment} on {node} is {one.phase.value}: {one.problem}"
