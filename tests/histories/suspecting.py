"""Suspicions of nodes, as steps of a history."""

from random import Random

from tests.histories.moving import two_nodes
from tests.histories.world import World


def suspect(world: World, rng: Random) -> str:
    """Let a node suspect another one, which may be alive; returns what was done.

    Or each of them suspects the other; or the other one dies, and its session has not expired.
    """
    if not two_nodes(world):
        return "there is one node"
    one, other = rng.sample(sorted(world.nodes), 2)
    drawn = rng.random()
    suspected = world.nodes[other].record
    if drawn < 0.3:
        world.kill_node(other, lose_folder=rng.random() < 0.3, expires=False)
        text = f"{other} dies, and is suspected by {one}"
    elif drawn < 0.5:
        world.nodes[other].suspect(world.nodes[one].record)
        text = f"{one} and {other} suspect each other"
    else:
        text = f"{one} suspects {other}"
    world.nodes[one].suspect(suspected)
    return text


def trust(world: World, rng: Random) -> str:
    """Let a node suspect nobody any more, or all of them; returns what was done.

    Or the sessions of dead nodes expire.
    """
    found = sorted(name for name, node in world.nodes.items() if node.suspects)
    if world.unexpired and rng.random() < 0.5:
        gone = ", ".join(sorted(world.unexpired))
        world.expire()
        return f"the sessions expire of {gone}"
    if not found:
        return "nobody suspects anybody"
    chosen = found if rng.random() < 0.5 else [rng.choice(found)]
    for name in chosen:
        world.nodes[name].trust()
    return f"{', '.join(chosen)}: no longer"


def end_all(world: World) -> None:
    """End all suspicions, and the sessions of dead nodes."""
    world.expire()
    for node in world.nodes.values():
        node.trust()
