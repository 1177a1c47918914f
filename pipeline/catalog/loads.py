"""What nodes have to do while fragments are placed on them, and which places are left."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from pipeline.catalog.records import FragmentRecord, NodeRecord, OwnerRecord
from pipeline.catalog.secondaries import weight
from pipeline.ids import FragmentId, NodeId

Rank = tuple[bool | float | int | str, ...]


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
class Load:
    """What a node has to do so far.

    A fragment that does not run is one node's, too, which reports it; it takes no place.
    """

    node: NodeRecord
    cost_us: int = 0
    fragments: dict[FragmentId, Placeable] = field(default_factory=dict)
    running: dict[FragmentId, Placeable] = field(default_factory=dict)

    def add(self, one: Placeable) -> None:
        """Place a fragment on the node."""
        self.cost_us += cost_us(one)
        self.fragments[one.id] = one
        if one.running:
            self.running[one.id] = one

    def remove(self, one: Placeable) -> None:
        """Take a fragment from the node."""
        self.cost_us -= cost_us(one)
        del self.fragments[one.id]
        self.running.pop(one.id, None)

    @property
    def places(self) -> float:
        """How many more fragments may run on it; negative if there are too many."""
        most = self.node.most_fragments
        return most - len(self.running) if most else float("inf")

    def has_room(self, one: Placeable) -> bool:
        """Whether a fragment may be added."""
        return not one.running or self.places > 0

    def surplus(self) -> tuple[Placeable, ...]:
        """The fragments that are too many: of the lowest priority, and of those the last ones."""
        most = self.node.most_fragments
        return tuple(sorted(self.running.values(), key=_last)[most:]) if most else ()

    def rank(self, one: Placeable) -> Rank:
        """The order of nodes for a fragment, the best one first."""
        capacity, cost = self.node.capacity, self.cost_us + cost_us(one)
        load = cost / capacity if capacity else float(cost)
        apart = {FragmentId(one.record.network, name) for name in one.record.apart}
        near = bool(apart & self.running.keys())
        return near, not capacity, load, len(self.fragments), self.node.node

    def standby_rank(self, one: Placeable, level: Collection[tuple[FragmentId, NodeId]]) -> Rank:
        """The same for a fragment with secondaries; `level`: those that are, each with a node."""
        is_level = (one.id, self.node.node) in level
        return not is_level, -weight(one.record, self.node), self.node.node


def cost_us(one: Placeable) -> int:
    """The share of a fragment in what a node has to do; one that does not run has none."""
    return max(1, one.record.cost_us) if one.running else 0


def places_left(loads: Iterable[Load]) -> float:
    """How many more fragments may run on some nodes."""
    return sum(max(0, load.places) for load in loads)


def _last(one: Placeable) -> tuple[int, int, FragmentId]:
    """The order of the fragments of a node; those that are too many are at the end."""
    claimed_at_ms = one.owner.claimed_at_ms if one.owner is not None else 0
    return one.record.priority.order, claimed_at_ms, one.id
