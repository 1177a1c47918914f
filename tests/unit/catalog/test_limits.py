"""Placement on nodes that have a limit of fragments."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.placing import Placement, place
from pipeline.catalog.records import NodeRecord, OwnerRecord
from pipeline.catalog.secondaries import may_run, open_to
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import Epoch, FragmentId, Millis, NodeId
from pipeline.priority import Priority
from tests.unit.catalog.support import ME
from tests.unit.catalog.test_placing import NAMES, ZONES, node, wanted

A, B, C = map(NodeId, NAMES)


def limited(name: str, most: int, zone: str = "") -> NodeRecord:
    """A node on which so many fragments may run; 0: any number."""
    return replace(node(name, zone), most_fragments=most)


def one(
    name: str,
    priority: str = "normal",
    nodes: str = "",
    *,
    owner: str = "",
    claimed: int = 1,
    rests: bool = False,
    **given: Any,
) -> Deployed:
    """A deployed fragment; `claimed`: when, the later the larger."""
    found = wanted(name, nodes, owner=owner, **given)
    claim = found.owner
    if claim is not None:
        claim = replace(claim, claimed_at_ms=Millis(claimed), rests=rests)
    return replace(found, record=replace(found.record, priority=Priority(priority)), owner=claim)


def found(nodes: Iterable[NodeRecord], *fragments: Deployed, **given: Any) -> dict[str, str]:
    """The node of each fragment by names; `queued` if it is."""
    placement = place(tuple(nodes), fragments, **given)
    names = {str(f.fragment): str(at) for f, at in placement.nodes.items()}
    return names | {str(f.fragment): "queued" for f in placement.queued}


def test_no_more_fragments_than_the_limit_run_on_a_node() -> None:
    """The rest is queued; without a limit nothing is."""
    three = [one(f"f{n}") for n in range(3)]
    assert sorted(found([limited("a", 2)], *three).values()) == ["a", "a", "queued"]
    assert set(found([limited("a", 0)], *three).values()) == {"a"}
    assert place([limited("a", 2)], three).full == {A}
    assert place([limited("a", 4)], three).full == frozenset()


def test_those_of_a_high_priority_are_placed_first() -> None:
    """Then those of a normal one."""
    every = [one("l", "low"), one("n"), one("h", "high")]
    assert found([limited("a", 2)], *every) == {"l": "queued", "n": "a", "h": "a"}


def test_of_equal_priority_the_cheap_ones_are_placed_if_there_are_too_few_places() -> None:
    """If there are enough, the costly ones are placed first, as without limits."""
    every = [one("join", cost_us=80), one("f", cost_us=3), one("g", cost_us=2)]
    assert found([limited("a", 2)], *every) == {"join": "queued", "f": "a", "g": "a"}
    assert found([limited("a", 1), limited("b", 2)], *every) == {"join": "a", "f": "b", "g": "b"}


def test_one_of_a_higher_priority_displaces_the_lowest_one() -> None:
    """Of these the cheapest; never one of its own or of a higher priority."""
    low = [one("l", "low", owner="a", cost_us=9), one("m", "low", owner="a", cost_us=3)]
    running = [*low, one("n", owner="a"), one("h", "high", owner="a")]
    full = [limited("a", 4)]
    kept = {"l": "a", "m": "queued", "n": "a", "h": "a", "new": "a"}
    assert found(full, *running, one("new")) == kept
    assert found(full, *running, one("new", "low"))["new"] == "queued"
    highs = [one(f"h{n}", "high", owner="a") for n in range(4)]
    assert found(full, *highs, one("new", "high"))["new"] == "queued"


def test_nothing_is_displaced_while_a_node_has_room() -> None:
    """Whatever that has to do already."""
    nodes = [limited("a", 1), node("b", capacity=1)]
    low, busy = one("l", "low", owner="a"), one("busy", owner="b", cost_us=900)
    assert found(nodes, low, busy, one("h", "high")) == {"l": "a", "busy": "b", "h": "b"}


def test_a_displaced_one_goes_where_there_is_room() -> None:
    """As one that nobody runs."""
    nodes = [limited("a", 1, "x"), limited("b", 1)]
    low, high = one("l", "low", owner="a"), one("h", "high", "zone=x")
    assert found(nodes, low, high) == {"l": "b", "h": "a"}
    assert found(nodes, low, high, one("n", owner="b")) == {"l": "queued", "h": "a", "n": "b"}
    lower = one("n", "low", owner="b")
    assert found(nodes, replace(low, record=one("l").record), high, lower)["n"] == "queued"


def test_what_is_paused_takes_no_place() -> None:
    """When it is to run again, it has to find one, before its owner gives another one up for it."""
    paused, here = one("p", owner="a", running=False, rests=True), one("f", owner="a", claimed=9)
    assert found([limited("a", 1)], paused, here) == {"p": "a", "f": "a"}
    again = one("p", owner="a", rests=True)
    assert found([limited("a", 1)], again, here) == {"p": "queued", "f": "a"}
    assert found([limited("a", 1), limited("b", 0)], again, here) == {"p": "b", "f": "a"}
    assert found([limited("a", 2), limited("b", 0)], again, here) == {"p": "a", "f": "a"}
    urgent = one("p", "high", owner="a", rests=True)
    assert found([limited("a", 1)], urgent, here) == {"p": "a", "f": "queued"}


def test_a_node_with_a_lower_limit_gives_the_last_ones_up() -> None:
    """Those of the lowest priority first."""
    low, old, new = one("l", "low", owner="a"), one("f", owner="a"), one("e", owner="a", claimed=2)
    assert found([limited("a", 2)], low, new, old) == {"l": "queued", "f": "a", "e": "a"}
    assert found([limited("a", 1)], low, new, old) == {"l": "queued", "f": "a", "e": "queued"}


def test_a_drained_node_keeps_what_has_no_room_elsewhere() -> None:
    """Of what has to leave it, the highest priorities go; they displace lower ones."""
    nodes = [limited("a", 0), limited("b", 1)]
    every = [one("l", "low", owner="b"), one("n", owner="a"), one("h", "high", owner="a")]
    assert found(nodes, *every, drained={A}) == {"l": "queued", "n": "a", "h": "b"}


def test_one_that_leaves_a_drained_node_comes_before_a_new_one() -> None:
    """Of equal priority; on the drained node it would be in the way."""
    nodes = [limited("a", 0), limited("b", 1)]
    leaving, new = one("f", owner="a", cost_us=2), one("new", cost_us=90)
    assert found(nodes, leaving, new, drained={A}) == {"f": "b", "new": "queued"}


def test_a_move_goes_to_a_node_with_room_or_displaces() -> None:
    """Else the fragment stays; one that was released already goes elsewhere."""
    nodes = [limited("a", 1), limited("b", 1), limited("c", 1)]
    moved = one("f", owner="a")
    to_b = {moved.id: B}
    assert found(nodes, moved, moves=to_b)["f"] == "b"
    assert found(nodes, moved, one("n", owner="b"), moves=to_b) == {"f": "a", "n": "b"}
    low = one("l", "low", owner="b")
    assert found(nodes[:2], moved, low, moves=to_b) == {"f": "b", "l": "a"}
    assert found(nodes[:2], moved, low, waiting={moved.id}) == {"f": "a", "l": "b"}
    free = one("f")
    assert found(nodes, free, one("n", owner="b"), one("m", owner="a"), moves=to_b)["f"] == "c"


def test_a_level_follower_is_worth_a_place() -> None:
    """It displaces a lower priority there; of its own priority it does not, and goes elsewhere."""
    nodes = [limited("b", 1), node("c")]
    lost = one("f", owner="a")
    lost = replace(lost, record=replace(lost.record, active_standbys=1))
    level = {(lost.id, B)}
    assert found(nodes, lost, one("l", "low", owner="b"), level=level) == {"f": "b", "l": "c"}
    assert found(nodes, lost, one("n", owner="b"), level=level) == {"f": "c", "n": "b"}


# --- in general -----------------------------------------------------------------------------------

names = st.sampled_from(NAMES)
nodes_up = st.lists(
    st.builds(limited, names, st.sampled_from([0, 1, 1, 2, 3]), st.sampled_from(ZONES)),
    unique_by=lambda record: record.node,
    max_size=3,
)
fragments = st.lists(
    st.builds(
        one,
        st.sampled_from("fghijklm"),
        st.sampled_from([one.value for one in Priority]),
        st.sampled_from(["", "", "zone=x", "zone!=x", "zone=z"]),
        owner=st.sampled_from(["", "", *NAMES]),
        claimed=st.integers(1, 3),
        rests=st.booleans(),
        cost_us=st.integers(0, 100),
        running=st.sampled_from([True, True, True, False]),
    ),
    unique_by=lambda found: found.id,
    max_size=8,
)
drains = st.sets(names.map(NodeId))


def check(
    placement: Placement,
    nodes: Collection[NodeRecord],
    every: Collection[Deployed],
    drained: Collection[NodeId],
) -> None:
    """Limits are kept, and no lower priority has a place that a queued fragment could have."""
    by_id = {f.id: f for f in every}
    for record in nodes:
        here = [by_id[name] for name, at in placement.nodes.items() if at == record.node]
        running = [f for f in here if f.running]
        assert not record.most_fragments or len(running) <= record.most_fragments
        is_full = bool(record.most_fragments) and len(running) == record.most_fragments
        assert is_full == (record.node in placement.full)
        for name in placement.queued:
            queued = by_id[name]
            assert queued.running
            if record not in open_to(queued.record, nodes, drained):
                continue
            assert is_full
            lowest = max(f.record.priority.order for f in running)
            assert lowest <= queued.record.priority.order


def owned(every: Iterable[Deployed], placement: Placement) -> list[Deployed]:
    """The fragments once a placement is carried out."""

    def after(one: Deployed) -> Deployed:
        at, owner = placement.nodes.get(one.id), one.owner
        if owner is not None and owner.node == at and not owner.rests:
            return one
        claim = OwnerRecord(at, ME, Epoch(2), Millis(9), Millis(9)) if at else None
        return replace(one, owner=claim) if at or one.id in placement.queued else one

    return [after(one) if one.running else one for one in every]


def running(placement: Placement, every: Iterable[Deployed]) -> dict[FragmentId, NodeId]:
    """The nodes of those that should run."""
    return {f.id: placement.nodes[f.id] for f in every if f.running and f.id in placement.nodes}


@given(nodes_up, fragments, drains, st.data())
def test_priorities_are_kept_and_what_is_reached_stays(
    nodes: list[NodeRecord], every: list[Deployed], drained: set[NodeId], data: st.DataObject
) -> None:
    """Also with moves and followers that are level; whatever the order of the nodes."""
    up = [record.node for record in nodes]
    targets = st.sampled_from([None, *up])
    moves = {f.id: to for f in every if (to := data.draw(targets)) is not None}
    level = {(f.id, at) for f in every if (at := data.draw(targets)) is not None}
    every = [
        replace(f, record=replace(f.record, active_standbys=data.draw(st.integers(0, 1))))
        for f in every
    ]
    placement = place(nodes, every, drained, moves, level=level)
    check(placement, nodes, every, drained)
    mixed = data.draw(st.permutations(nodes)), data.draw(st.permutations(every))
    assert place(*mixed, drained, moves, level=level) == placement
    after = owned(every, placement)
    again = place(nodes, after, drained, level=level)
    assert running(again, every) == running(placement, every)
    assert again.queued == {
        f.id
        for f in every
        if f.id in placement.queued and any(may_run(f.record, record) for record in nodes)
    }


@given(nodes_up, fragments)
def test_those_of_an_equal_priority_keep_their_places(
    nodes: list[NodeRecord], every: list[Deployed]
) -> None:
    """What new fragments of the same or of a lower priority come, or which nodes."""
    settled = owned(every, place(nodes, every))
    anywhere = [f for f in settled if not f.record.nodes]
    before = running(place(nodes, settled), anywhere)
    lowest = max((f.record.priority.order for f in settled if f.running), default=0)
    priorities = [one.value for one in Priority if one.order >= lowest]
    new = [one(f"new{n}", priority) for n, priority in enumerate(priorities)]
    more = [*nodes, *([limited("d", 1)] if len(nodes) < len(NAMES) else [])]
    for there in (nodes, more):
        after = running(place(there, [*settled, *new]), anywhere)
        assert before.items() <= after.items()


# --- as carried out -------------------------------------------------------------------------------


@dataclass
class Carried:
    """Nodes that carry the placement out, each by its own view of the catalog."""

    nodes: dict[NodeId, NodeRecord]
    every: dict[FragmentId, Deployed]
    unseen: dict[NodeId, set[NodeId]] = field(default_factory=dict)
    """For each node, those that it does not see."""
    lanes: dict[NodeId, set[FragmentId]] = field(default_factory=dict)
    claims: int = 0

    def view(self, of: NodeId) -> CatalogSnapshot:
        """What a node reads."""
        there = tuple(r for r in self.nodes.values() if r.node not in self.unseen.get(of, ()))
        return CatalogSnapshot(there, tuple(self.every.values()))

    def step(self, of: NodeId, view: CatalogSnapshot) -> bool:
        """Let a node do what it is to do by a view; returns whether it has done anything."""
        record, lanes = self.nodes[of], self.lanes.setdefault(of, set())
        did = False
        for name, leaving in view.leaving(of).items():
            lanes.discard(name)
            if self.every[name].owner == leaving.owner:
                self.every[name] = replace(self.every[name], owner=None)
                did = True
        for deployed in view.assigned_to(of):
            now = self.every[deployed.id].owner
            is_free = now is None or now.node == of or now.node not in self.nodes
            if not deployed.running or deployed.id in lanes or not is_free:
                continue
            if record.most_fragments and len(lanes) >= record.most_fragments:
                continue
            self.claims += 1
            claim = OwnerRecord(of, ME, Epoch(self.claims), Millis(self.claims), Millis(1))
            self.every[deployed.id] = replace(self.every[deployed.id], owner=claim)
            lanes.add(deployed.id)
            did = True
        assert not record.most_fragments or len(lanes) <= record.most_fragments
        return did

    def settle(self) -> int:
        """Let all nodes read what is there until nothing is done; returns after how many rounds."""
        for count in range(60):
            done = [self.step(name, self.view(name)) for name in sorted(self.nodes)]
            if not any(done):
                return count
        raise AssertionError("it does not come to rest")


@given(nodes_up.filter(bool), fragments, st.data())
def test_nodes_with_different_views_come_to_rest(
    nodes: list[NodeRecord], every: list[Deployed], data: st.DataObject
) -> None:
    """After views that are old, or lack nodes; and after a node has gone and is back.

    Then nothing is claimed any more, and no more fragments run than may.
    """
    world = Carried({r.node: r for r in nodes}, {f.id: f for f in every if f.running})
    for f in world.every.values():
        if f.owner is not None:
            world.lanes.setdefault(f.owner.node, set()).add(f.id)
    for record in nodes:  # as many as may run have lanes
        here = sorted(world.lanes.get(record.node, set()))
        world.lanes[record.node] = set(here[: record.most_fragments or None])
    names = sorted(world.nodes)
    world.unseen = {n: set(data.draw(st.sets(st.sampled_from(names)))) - {n} for n in names}
    views = {name: world.view(name) for name in names}
    for _ in range(data.draw(st.integers(0, 12))):
        name = data.draw(st.sampled_from(names))
        if data.draw(st.booleans()):
            views[name] = world.view(name)
        world.step(name, views[name])
    world.unseen = {}
    world.settle()
    rest(world)
    gone = data.draw(st.sampled_from(names))
    record = world.nodes.pop(gone)
    world.lanes.pop(gone, None)
    if world.nodes:
        world.settle()
        rest(world)
    runs = {f.id: f.owner.node for f in world.every.values() if f.owner is not None}
    world.nodes[gone] = record
    world.settle()
    rest(world)
    for f in world.every.values():  # only what did not run has started
        assert f.owner is not None or f.id not in runs or runs[f.id] == gone


def rest(world: Carried) -> None:
    """Check that nothing is left to be done, and that what is queued has no owner."""
    seen = world.view(next(iter(world.nodes)))
    placement = seen.placement
    check(placement, world.nodes.values(), tuple(world.every.values()), ())
    for name, f in world.every.items():
        if f.owner is not None and f.owner.node in world.nodes:
            assert placement.nodes[name] == f.owner.node
        assert not (name in placement.nodes and f.owner is None)
