"""Nodes with a limit of fragments, as steps of a history and as checks."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from pipeline.ids import FragmentId, NodeId
from tests.histories.moving import owners
from tests.histories.node import OWNER
from tests.histories.world import World

LIMITS: Final = (0, 1, 1, 2)
"""0: none."""


def crowd(world: World, rng: Random) -> str:
    """Start all nodes again, each with a limit; returns what was done."""
    world.limits = {name: rng.choice(LIMITS) for name in ("n1", "n2", "n3")}
    names = sorted(world.nodes)
    for name in names:
        world.kill_node(name, lose_folder=rng.random() < 0.1)
    for name in names:
        world.start_node(name)
    return ", ".join(f"at most {most or 'any'} on {name}" for name, most in world.limits.items())


def end_all(world: World) -> None:
    """Start the nodes with a limit again, without one."""
    world.limits = {}
    for name, node in sorted(world.nodes.items()):
        if node.record.most_fragments:
            world.kill_node(name, lose_folder=False)
            world.start_node(name)


def is_limited(world: World) -> bool:
    """Whether a node has a limit."""
    return any(node.record.most_fragments for node in world.nodes.values())


def too_many(world: World) -> Iterator[str]:
    """The nodes on which more lanes run than may."""
    for name, node in world.nodes.items():
        lanes = [turn for turn in node.turns if not node.follows(turn)]
        if 0 < node.record.most_fragments < len(lanes):
            yield f"{len(lanes)} lanes run on {name}, {node.record.most_fragments} may"


def places(world: World) -> Mapping[FragmentId, NodeId]:
    """The nodes of the fragments that have an owner that is up."""
    found = owners(world).items()
    return {fragment: node for fragment, (node, _) in found if node in world.nodes}


def wrongly_placed(world: World) -> Iterator[str]:
    """Fragments that are not where the placement has them, or are queued for a lower priority."""
    found = world.catalog.snapshot(OWNER)
    placement, there = found.placement, places(world)
    priorities = {one.id: one.record.priority.order for one in found.fragments}
    for fragment in sorted(priorities):
        at = placement.nodes.get(fragment)
        if there.get(fragment) != at:
            yield f"{fragment} is owned by {there.get(fragment)}, and placed on {at}"
    lowest = max((priorities[one] for one in placement.nodes), default=0)
    for fragment in sorted(placement.queued):
        if priorities[fragment] < lowest:
            yield f"{fragment} is queued, and one of a lower priority has a place"
