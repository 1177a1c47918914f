"""Moves between nodes, as steps of a history and as checks of its end."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Final

from brokers.log_reader import LogReader
from pipeline.errors import RefusedError
from pipeline.ids import Epoch, FragmentId, NodeId
from pipeline.operations.drain import Drain
from pipeline.operations.move import Moves
from tests.histories.node import OWNER
from tests.histories.world import World

WITHIN_S: Final = (3.0, 20.0, 60.0)
"""Time limits of moves."""
OVERDUE_MS: Final = 10_000
"""A move whose time has passed so long ago should have ended."""


def move(world: World, rng: Random) -> str:
    """Ask for a move of a fragment to another node; returns what was done."""
    owned = owners(world)
    if not owned or not two_nodes(world):
        return "nothing to move"
    fragment = rng.choice(sorted(owned))
    to = NodeId(rng.choice(sorted(world.nodes)))
    moves = _moves(world)
    try:
        moves.ask(moves.planned(fragment, to, rng.choice(WITHIN_S)))
    except RefusedError as error:
        return f"{fragment} to {to}: {error.message}"
    return f"{fragment} to {to}"


def cancel(world: World, rng: Random) -> str:
    """Cancel a move; returns what was done."""
    found = world.catalog.transfers.of(OWNER)
    if not found:
        return "nothing to cancel"
    transfer = rng.choice(found)
    try:
        _moves(world).cancel(transfer.id)
    except RefusedError as error:
        return f"{transfer.id}: {error.message}"
    return f"{transfer.id}"


def drain(world: World, rng: Random) -> str:
    """Drain a node; returns what was done."""
    if not two_nodes(world):
        return "there is one node"
    node = NodeId(rng.choice(sorted(world.nodes)))
    try:
        Drain(node, OWNER, world.catalog, world.clock).begin(rng.choice(WITHIN_S))
    except RefusedError as error:
        return f"{node}: {error.message}"
    return f"{node}"


def undrain(world: World) -> str:
    """End all drains; returns whose."""
    drained = sorted(world.catalog.drains.of(OWNER))
    for node in drained:
        world.catalog.drains.undrain(OWNER, node)
    return ", ".join(drained)


def owners(world: World) -> Mapping[FragmentId, tuple[NodeId, Epoch]]:
    """The owners of all fragments."""
    found = world.catalog.snapshot(OWNER).fragments
    return {one.id: (one.owner.node, one.owner.epoch) for one in found if one.owner is not None}


def overdue(world: World) -> Iterator[str]:
    """Moves that should have ended."""
    for one in world.catalog.transfers.of(OWNER):
        passed_ms = world.clock.now_ms() - one.until_ms
        if passed_ms > OVERDUE_MS:
            yield f"the move of {one.id} to {one.to} is {passed_ms} ms overdue"


def _moves(world: World) -> Moves:
    return Moves(OWNER, world.catalog, world.kafka, LogReader(world.kafka, 0.0), world.clock)


def two_nodes(world: World) -> bool:
    """Start a second node if there is one; False: there is none."""
    if len(world.nodes) == 1:
        world.start_node(next(name for name in ("n1", "n2") if name not in world.nodes))
        world.round()
    return len(world.nodes) > 1
