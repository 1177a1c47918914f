"""Placement of fragments on the nodes of a participant. Pure.

Each node computes it from its own snapshot of the catalog: equal snapshots give equal placements,
and of two nodes with different ones the catalog lets one claim a fragment.

1. A fragment stays with its owner as long as that is up, is not drained, and its labels are those
   that are meant; or as long as no other such node is up.
   One that a user moves goes to the node that was asked for, if that may run it, once that node is
   ready; until then it stays, also on a drained node.
2. Any other one goes to such a node: those with the fewest choices first, then the costly ones.
   Each goes where possible to a node that runs no fragment that it is to run apart from, and of
   those to the one that has the least to do for its capacity then; to one without capacity last.
3. One with secondaries goes to one that is level with it; if there is none, but it has an owner,
   to the first of the others, which may have followed it for a while.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from pipeline.catalog.records import FragmentRecord, NodeRecord, OwnerRecord
from pipeline.catalog.secondaries import may_run, weight
from pipeline.ids import FragmentId, NodeId


class Placeable(Protocol):
    """A deployed fragment."""

    @property
    def id(self) -> FragmentId:
        """Id of the fragment."""

    @property
    def record(self) -> FragmentRecord:
        """Its own record."""

    @property
    def owner(self) -> OwnerRecord | None:
        """Its owner; None before the first claim, and once it was released."""

    @property
    def running(self) -> bool:
        """Whether it should run."""


@dataclass(slots=True)
class _Load:
    """What a node has to do so far."""

    node: NodeRecord
    cost_us: int = 0
    fragments: set[FragmentId] = field(default_factory=set)
    running: set[FragmentId] = field(default_factory=set)

    def add(self, one: Placeable) -> None:
        self.cost_us += _cost_us(one)
        self.fragments.add(one.id)
        if one.running:
            self.running.add(one.id)

    def rank(self, one: Placeable) -> tuple[bool, bool, float, int, NodeId]:
        """The order of candidates for a fragment, the best one first."""
        capacity, cost_us = self.node.capacity, self.cost_us + _cost_us(one)
        load = cost_us / capacity if capacity else float(cost_us)
        apart = {FragmentId(one.record.network, name) for name in one.record.apart}
        near = bool(apart & self.running)
        return near, not capacity, load, len(self.fragments), self.node.node

    def standby_rank(self, one: Placeable, *, is_level: bool) -> tuple[bool, float, NodeId]:
        """The same for a fragment with secondaries."""
        return not is_level, -weight(one.record, self.node), self.node.node


def placed(
    nodes: Sequence[NodeRecord],
    fragments: Iterable[Placeable],
    drained: Collection[NodeId] = frozenset(),
    moves: Mapping[FragmentId, NodeId] = MappingProxyType({}),
    waiting: Collection[FragmentId] = frozenset(),
    level: Collection[tuple[FragmentId, NodeId]] = frozenset(),
) -> Mapping[FragmentId, NodeId]:
    """The node of each fragment; one that no node that is up may run is left out.

    Args:
        nodes: the nodes of the participant that are up.
        fragments: all fragments of the participant.
        drained: the nodes that claim nothing.
        moves: the fragments that a user has asked to move, and to where they can go now.
        waiting: those whose target is not ready for them: they stay with their owner.
        level: fragments, each with a node whose follower is level with its owner.
    """
    loads = {node.node: _Load(node) for node in nodes}
    open_ones = [load for load in loads.values() if load.node.node not in drained]
    free: list[tuple[Placeable, list[_Load]]] = []
    for one in fragments:
        candidates = [load for load in open_ones if may_run(one.record, load.node)]
        target = loads.get(moves[one.id]) if one.id in moves else None
        owner = None if one.owner is None else loads.get(one.owner.node)
        stays = owner in candidates or not candidates or one.id in waiting
        if target is not None and target in candidates:
            target.add(one)
        elif owner is not None and stays:
            owner.add(one)
        elif candidates:
            free.append((one, candidates))
    free.sort(key=lambda found: (len(found[1]), -_cost_us(found[0]), found[0].id))
    for one, candidates in free:
        _best(one, candidates, level).add(one)
    return {of: load.node.node for load in loads.values() for of in load.fragments}


def _best(
    one: Placeable, candidates: Sequence[_Load], level: Collection[tuple[FragmentId, NodeId]]
) -> _Load:
    followed = any((one.id, load.node.node) in level for load in candidates)
    if not (one.record.reliability.secondaries and (followed or one.owner is not None)):
        return min(candidates, key=lambda load: load.rank(one))
    return min(
        candidates,
        key=lambda load: load.standby_rank(one, is_level=(one.id, load.node.node) in level),
    )


def _cost_us(one: Placeable) -> int:
    """The share of a fragment in what a node has to do; one that does not run has none."""
    return max(1, one.record.cost_us) if one.running else 0
