"""Placement of fragments on the nodes of a participant. Pure.

Each node computes it from its own snapshot of the catalog: equal snapshots give equal placements,
and of two nodes with different ones the catalog lets one claim a fragment.

1. A fragment stays with its owner as long as that is up, is not drained, and its labels are those
   that are meant; or as long as no other such node is up, or has room for it.
   One that a user moves goes to the node that was asked for, if that may run it, once that node is
   ready; until then it stays, also on a drained node.
2. Any other one goes to such a node: those with the fewest choices first, then the costly ones.
   Each goes where possible to a node that runs no fragment that it is to run apart from, and of
   those to the one that has the least to do for its capacity then; to one without capacity last.
   If no such node is up, one that is drained and has the labels takes it, until there is one.
3. One with secondaries goes to one that is level with it; if there is none, but it has an owner,
   to the first of the others, which may have followed it for a while.
4. A node may have a limit of fragments that run. Those of a high priority are placed first. One
   that finds no room displaces one of the lowest priority below its own, which goes elsewhere, or
   is queued; if there is no such one, it is queued itself. Of equal priority those that run keep
   their places, and if there are fewer places than fragments, the cheap ones come first.

So no fragment is queued while one of a lower priority has a place that it could have; and what is
reached stays, since a place is only ever lost to a higher priority.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from pipeline.catalog.loads import Load, Placeable, Rank, cost_us, places_left
from pipeline.catalog.records import NodeRecord
from pipeline.catalog.secondaries import open_to
from pipeline.ids import FragmentId, NodeId
from pipeline.priority import Priority

Level = Collection[tuple[FragmentId, NodeId]]
"""Fragments, each with a node whose follower is level with its owner."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the fragments are to be; one that no node that is up may run is nowhere.

    Args:
        nodes: the node of each fragment.
        queued: the fragments that should run, and that no node has room for.
        full: the nodes that run as many as they may.
    """

    nodes: Mapping[FragmentId, NodeId]
    queued: frozenset[FragmentId] = frozenset()
    full: frozenset[NodeId] = frozenset()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A fragment to be placed.

    Args:
        one: the fragment.
        allowed: where it may go.
        home: its owner; None: that is not up, or there is none.
        target: where a user moves it.
        stays: whether it is where it should be, with its owner.
    """

    one: Placeable
    allowed: tuple[Load, ...]
    home: Load | None
    target: Load | None
    stays: bool

    @property
    def rests(self) -> bool:
        """Whether it has to find a place again, be it with its owner."""
        owner = self.one.owner
        return self.one.running and owner is not None and owner.rests

    @property
    def is_seated(self) -> bool:
        """Whether it has a place now, with its owner."""
        return self.home is not None and self.one.id in self.home.fragments


def place(
    nodes: Sequence[NodeRecord],
    fragments: Iterable[Placeable],
    drained: Collection[NodeId] = frozenset(),
    moves: Mapping[FragmentId, NodeId] = MappingProxyType({}),
    waiting: Collection[FragmentId] = frozenset(),
    level: Level = frozenset(),
) -> Placement:
    """Place all fragments of a participant.

    Args:
        nodes: the nodes of the participant that are up.
        fragments: all fragments of the participant.
        drained: the nodes that claim nothing that another one that is up may run.
        moves: the fragments that a user has asked to move, and to where they can go now.
        waiting: those whose target is not ready for them: they stay with their owner.
        level: fragments, each with a node whose follower is level with its owner.
    """
    loads = {node.node: Load(node) for node in nodes}
    every = {
        one.id: _wanted(one, loads, drained, moves.get(one.id), is_waiting=one.id in waiting)
        for one in fragments
    }
    queues: dict[Priority, dict[FragmentId, _Wanted]] = {one: {} for one in Priority}

    def queue(one: Placeable) -> None:
        queues[one.record.priority][one.id] = every[one.id]

    for wanted in every.values():
        if wanted.home is not None and not wanted.rests:
            wanted.home.add(wanted.one)
        if not wanted.is_seated or not wanted.stays:
            queue(wanted.one)
    for load in loads.values():
        for one in load.surplus():
            load.remove(one)
            queue(one)
    open_ones = [load for name, load in loads.items() if name not in drained] or [*loads.values()]
    for of_priority in queues.values():
        for displaced in _placed(of_priority, open_ones, level):
            queue(displaced)
    found = {name: load.node.node for load in loads.values() for name in load.fragments}
    return Placement(
        found,
        frozenset(
            wanted.one.id
            for wanted in every.values()
            if wanted.one.running and wanted.allowed and wanted.one.id not in found
        ),
        frozenset(name for name, load in loads.items() if load.places <= 0),
    )


def _wanted(
    one: Placeable,
    loads: Mapping[NodeId, Load],
    drained: Collection[NodeId],
    target: NodeId | None,
    *,
    is_waiting: bool,
) -> _Wanted:
    found = open_to(one.record, [load.node for load in loads.values()], drained)
    allowed = tuple(loads[node.node] for node in found)
    candidates = tuple(load for load in allowed if load.node.node not in drained)
    home = None if one.owner is None else loads.get(one.owner.node)
    if home is not None and not candidates and home not in allowed:
        allowed = (*allowed, home)
    to = next((load for load in candidates if load.node.node == target and load is not home), None)
    return _Wanted(one, allowed, home, to, to is None and (home in allowed or is_waiting))


def _placed(
    queue: dict[FragmentId, _Wanted], open_ones: Sequence[Load], level: Level
) -> Iterator[Placeable]:
    """Place fragments of one priority; yields those that are displaced, of lower ones.

    One that leaves its owner may make room for another one, before which it was tried. So all are
    tried again until none finds a place.
    """
    new = sum(wanted.one.running and not wanted.is_seated for wanted in queue.values())
    ranked = partial(_order, is_scarce=new > places_left(open_ones))
    left = sorted(queue.values(), key=ranked)
    before = len(left) + 1
    while len(left) < before:
        before, tried, left = len(left), left, []
        for wanted in tried:
            found = _place_for(wanted, level)
            if found is None:
                left.append(wanted)
                continue
            to, displaced = found
            if displaced is not None:
                to.remove(displaced)
                yield displaced
            if wanted.home is not None and wanted.is_seated:
                wanted.home.remove(wanted.one)
            to.add(wanted.one)


def _order(wanted: _Wanted, *, is_scarce: bool) -> tuple[bool, int, int, FragmentId]:
    """Those that leave their owner come first: they make room."""
    cost = cost_us(wanted.one)
    return (
        not wanted.is_seated,
        len(wanted.allowed),
        cost if is_scarce else -cost,
        wanted.one.id,
    )


def _place_for(wanted: _Wanted, level: Level) -> tuple[Load, Placeable | None] | None:
    """The node that a fragment gets, and the fragment that it displaces there.

    None: there is no place for it. The nodes where it goes on at once are tried before the others,
    the target of a move before them; if it has a place that it may keep, only these.
    """
    one = wanted.one
    followers = tuple(load for load in wanted.allowed if (one.id, load.node.node) in level)
    groups: list[tuple[Load, ...]] = [(wanted.target,)] if wanted.target is not None else []
    if not (wanted.is_seated and wanted.home in wanted.allowed):
        groups += [followers] if one.record.reliability.secondaries else []
        groups.append(wanted.allowed)
    rank = partial(_rank, wanted, level=level, is_followed=bool(followers))
    for group in groups:
        if room := [load for load in group if load.has_room(one)]:
            return min(room, key=rank), None
        taken = [(load, other) for load in group for other in load.running.values()]
        if below := [found for found in taken if _yields(found[1], one)]:
            return min(below, key=lambda found: (*_loss(found[1]), rank(found[0]), found[1].id))
    return None


def _rank(wanted: _Wanted, load: Load, *, level: Level, is_followed: bool) -> tuple[bool, Rank]:
    one = wanted.one
    followed = one.record.reliability.secondaries and (is_followed or one.owner is not None)
    rank = load.standby_rank(one, level) if followed else load.rank(one)
    return load is not wanted.home, rank


def _yields(other: Placeable, one: Placeable) -> bool:
    """Whether a fragment gives its place up for another one."""
    return _order_of(other) > _order_of(one)


def _loss(displaced: Placeable) -> tuple[int, int]:
    """What is lost if a fragment is displaced; the least one is displaced first."""
    return -_order_of(displaced), cost_us(displaced)


def _order_of(one: Placeable) -> int:
    return one.record.priority.order
