"""Placement of fragments on nodes."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.placing import place
from pipeline.catalog.records import DesiredState, FragmentRecord, NodeRecord, OwnerRecord
from pipeline.catalog.secondaries import may_run, secondaries
from pipeline.catalog.snapshot import Deployed
from pipeline.ids import Epoch, FragmentId, FragmentName, NodeId
from tests.unit.catalog.support import ME, NOW, TOLLS, fragment, network

NAMES = ("a", "b", "c")
ZONES = ("", "x", "y")


def node(name: str, zone: str = "", capacity: int = 100) -> NodeRecord:
    """A node that is up; without a zone it has no label."""
    labels = (("zone", zone),) if zone else ()
    return NodeRecord(NodeId(name), ME, "h", 1, NOW, "0", reads=1, labels=labels, capacity=capacity)


def wanted(
    name: str,
    nodes: str = "",
    *,
    owner: str = "",
    cost_us: int = 5,
    apart: tuple[str, ...] = (),
    running: bool = True,
) -> Deployed:
    """A deployed fragment."""
    record: FragmentRecord = replace(
        fragment(FragmentName(name)),
        nodes=nodes,
        cost_us=cost_us,
        apart=tuple(map(FragmentName, apart)),
        desired=DesiredState.RUNNING if running else DesiredState.PAUSED,
    )
    claim = OwnerRecord(NodeId(owner), ME, Epoch(1), NOW, NOW) if owner else None
    return Deployed(network(), record, claim)


def placed(
    nodes: list[NodeRecord],
    fragments: Iterable[Deployed],
    drained: Collection[NodeId] = frozenset(),
    **given: Any,
) -> Mapping[FragmentId, NodeId]:
    """The node of each fragment; none is queued."""
    found = place(nodes, fragments, drained, **given)
    assert not found.queued
    return found.nodes


def where(nodes: list[NodeRecord], *fragments: Deployed) -> Mapping[str, str]:
    """The node of each fragment, by names."""
    return {one.fragment: at for one, at in placed(nodes, fragments).items()}


def test_equal_fragments_use_all_equal_nodes() -> None:
    """As many each."""
    found = where([node("a"), node("b")], *(wanted(f"f{n}") for n in range(4)))
    assert Counter(found.values()) == {"a": 2, "b": 2}


def test_costly_fragments_go_first_and_capacities_count() -> None:
    """The least loaded node for its capacity takes the next one."""
    fragments = [wanted("join", cost_us=80), *(wanted(f"f{n}") for n in range(4))]
    assert Counter(where([node("a"), node("b")], *fragments).values()) == {"a": 1, "b": 4}
    big = where([node("a"), node("b", capacity=300)], *(wanted(f"f{n}") for n in range(8)))
    assert Counter(big.values()) == {"a": 2, "b": 6}


def test_a_fragment_stays_where_it_runs() -> None:
    """Whatever else is up; only of a node that is down is it taken over."""
    owned = [wanted(f"f{n}", owner="a") for n in range(4)]
    assert set(where([node("a"), node("b")], *owned).values()) == {"a"}
    assert where([node("a"), node("b")], *owned, wanted("new"))["new"] == "b"
    assert set(where([node("b")], *owned).values()) == {"b"}


def test_only_nodes_with_the_labels_run_a_fragment() -> None:
    """If none is up, no node claims it; its owner keeps it."""
    nodes = [node("a", "x"), node("b", "y")]
    assert where(nodes, wanted("f", "zone=y"), wanted("g", "zone=y")) == {"f": "b", "g": "b"}
    assert where(nodes, wanted("f", "zone=z")) == {}
    assert where(nodes, wanted("f", "zone=z", owner="a")) == {"f": "a"}
    assert where(nodes, wanted("f", "zone=y", owner="a")) == {"f": "b"}


def test_a_node_without_capacity_is_the_last_choice() -> None:
    """It takes over when the others are gone."""
    fragments = [wanted(f"f{n}") for n in range(3)]
    assert set(where([node("a", capacity=0), node("b")], *fragments).values()) == {"b"}
    assert set(where([node("a", capacity=0)], *fragments).values()) == {"a"}


def test_a_drained_node_gives_up_what_others_may_run() -> None:
    """And claims nothing of that; what no other node may run stays."""
    nodes = [node("a", "x"), node("b", "y")]
    fragments = [wanted("f", owner="a"), wanted("g", "zone=x", owner="a"), wanted("h")]
    found = placed(nodes, fragments, {NodeId("a")})
    assert {one.fragment: at for one, at in found.items()} == {"f": "b", "g": "a", "h": "b"}


def test_a_drained_node_is_the_last_choice() -> None:
    """It takes what no other node that is up may run, by the same rules, until one comes."""
    a, b, c = node("a", "x"), node("b", "y"), node("c", "y")
    drained = {a.node, b.node}
    both = [wanted("f", "zone=x"), wanted("g", "zone=y"), wanted("h", "zone=z")]
    found = placed([a, b], both, drained)
    assert {one.fragment: at for one, at in found.items()} == {"f": "a", "g": "b"}
    spread = placed([a, b], [wanted(f"f{n}") for n in range(4)], drained)
    assert Counter(spread.values()) == {"a": 2, "b": 2}
    owned = wanted("g", owner="b")
    assert placed([a, b], [owned], drained) == {owned.id: "b"}
    assert placed([a, b, c], [owned], drained) == {owned.id: "c"}
    assert placed([a, b], [wanted("g", owner="c")], drained) != {}


def test_fragments_apart_run_on_different_nodes_where_possible() -> None:
    """Also apart from one that runs already; on a single node both run."""
    pair = [wanted("f", apart=("g",), cost_us=90), wanted("g", apart=("f",))]
    costly = wanted("other", owner="b", cost_us=900)
    assert where([node("a"), node("b")], *pair, costly) == {"f": "a", "g": "b", "other": "b"}
    assert where([node("a")], *pair) == {"f": "a", "g": "a"}


def test_a_fragment_with_fewer_choices_is_placed_first() -> None:
    """So that one that may run anywhere keeps apart from it; also on a node without capacity."""
    nodes = [node("a", "x"), node("b", "y")]
    anywhere, bound = wanted("f", apart=("g",), cost_us=90), wanted("g", "zone=x", apart=("f",))
    assert where(nodes, anywhere, bound) == {"f": "b", "g": "a"}
    spare = [node("a"), node("b", capacity=0)]
    pair = [wanted("f", apart=("g",)), wanted("g", apart=("f",))]
    assert sorted(where(spare, *pair).values()) == ["a", "b"]


def test_a_paused_fragment_is_apart_from_nothing() -> None:
    """It computes nothing."""
    paused = wanted("p", owner="a", running=False)
    nodes = [node("a", capacity=900), node("b", capacity=1)]
    assert where(nodes, paused, wanted("f", apart=("p",)))["f"] == "a"


def test_a_fragment_that_does_not_run_costs_nothing() -> None:
    """It is still one node's, which reports it."""
    paused = wanted("p", cost_us=500, owner="a", running=False)
    assert where([node("a"), node("b")], paused, wanted("f"), wanted("g"))["f"] == "b"
    assert where([node("a")], wanted("p", running=False)) == {"p": "a"}


names = st.sampled_from(NAMES)
nodes_up = st.lists(
    st.builds(node, names, st.sampled_from(ZONES), st.sampled_from([0, 50, 100])),
    unique_by=lambda record: record.node,
    max_size=3,
)
fragments_wanted = st.lists(
    st.builds(
        wanted,
        st.sampled_from("fghijk"),
        st.sampled_from(["", "zone=x", "zone!=x", "zone=z"]),
        owner=st.sampled_from(["", *NAMES]),
        cost_us=st.integers(0, 100),
        apart=st.lists(st.sampled_from("fghijk"), max_size=2, unique=True).map(tuple),
        running=st.booleans(),
    ),
    unique_by=lambda one: one.id,
    max_size=6,
)


@given(nodes_up, fragments_wanted, st.randoms())
def test_every_fragment_that_a_node_may_run_is_on_one(
    nodes: list[NodeRecord], fragments: list[Deployed], random: Random
) -> None:
    """On one that may, or its owner; whatever the order in which they are read."""
    found = placed(nodes, fragments)
    up = {record.node: record for record in nodes}
    for one in fragments:
        candidates = {name for name, record in up.items() if may_run(one.record, record)}
        at = found.get(one.id)
        owner = one.owner.node if one.owner and one.owner.node in up else None
        if owner in candidates or (owner and not candidates):
            assert at == owner
        elif candidates:
            assert at in candidates
        else:
            assert at is None
    random.shuffle(nodes)
    shuffled = list(fragments)
    random.shuffle(shuffled)
    assert placed(nodes, shuffled) == found


@given(nodes_up, fragments_wanted)
def test_a_placement_that_is_reached_stays(
    nodes: list[NodeRecord], fragments: list[Deployed]
) -> None:
    """Once each fragment is owned where it was placed, nothing moves."""
    found = placed(nodes, fragments)

    def owned(one: Deployed) -> Deployed:
        at = found.get(one.id)
        return replace(one, owner=OwnerRecord(at, ME, Epoch(2), NOW, NOW)) if at else one

    assert placed(nodes, [owned(one) for one in fragments]) == found


def test_labels_decide_who_may_run_a_fragment() -> None:
    """Without a selector every node may; with one of a later version none."""
    for nodes, expected in (("", True), ("zone=x", True), ("zone=y", False), ("zone~x", False)):
        assert may_run(wanted("f", nodes).record, node("a", "x")) is expected


def test_a_fragment_of_another_network_is_another_one() -> None:
    """Fragments are apart within a network."""
    other = FragmentId(replace(TOLLS, name=type(TOLLS.name)("other")), FragmentName("g"))
    record = replace(wanted("g").record, network=other.network)
    elsewhere = Deployed(network(), record, OwnerRecord(NodeId("a"), ME, Epoch(1), NOW, NOW))
    found = placed([node("a"), node("b", capacity=1)], [elsewhere, wanted("f", apart=("g",))])
    assert found[FragmentId(TOLLS, FragmentName("f"))] == "a"


def test_a_fragment_goes_where_it_is_moved_once_that_node_is_ready() -> None:
    """If the node may run it; until then it stays, also on a drained node."""
    nodes, owned = [node("a"), node("b"), node("c", "x")], wanted("f", owner="a")
    drained = frozenset({NodeId("a")})
    to_b = {owned.id: NodeId("b")}

    def at(one: Deployed = owned, **given: Any) -> str | None:
        return placed(nodes, [one], **given).get(one.id)

    assert at() == "a"
    assert at(moves=to_b) == "b"
    assert at(moves=to_b, drained=frozenset({NodeId("b")})) == "a"
    assert at(moves={owned.id: NodeId("gone")}) == "a"
    assert at(wanted("f", "zone=x", owner="c"), moves=to_b) == "c"
    assert at(drained=drained, waiting={owned.id}) == "a"
    assert at(drained=drained) != "a"
    free = wanted("f")
    assert at(free, moves={free.id: NodeId("b")}) == "b"
    assert at(free, waiting={free.id}) in {"a", "b", "c"}


def followed(name: str, by: int, owner: str = "") -> Deployed:
    """A fragment with secondaries."""
    one = wanted(name, owner=owner)
    return replace(one, record=replace(one.record, active_standbys=by))


def test_a_fragment_of_a_lost_owner_goes_to_its_secondary() -> None:
    """However much that has to do; but first to one that is level."""
    nodes, busy = [node("b"), node("c")], wanted("busy", owner="b", cost_us=500)
    names = [f"f{n}" for n in range(20)]
    for name in names:
        one = followed(name, 1, owner="a")
        (first,) = secondaries(one.record, NodeId("a"), nodes, frozenset())
        assert where(nodes, busy, one)[name] == first
        other = next(each.node for each in nodes if each.node != first)
        found = placed(nodes, [busy, one], level={(one.id, other)})
        assert found[one.id] == other


def test_a_new_fragment_with_secondaries_is_placed_as_any_other() -> None:
    """By what the nodes have to do."""
    nodes, busy = [node("b"), node("c")], wanted("busy", owner="b", cost_us=500)
    found = where(nodes, busy, *(followed(f"f{n}", 1) for n in range(4)))
    assert {found[f"f{n}"] for n in range(4)} == {"c"}


def test_a_released_fragment_goes_to_the_secondary_that_is_level() -> None:
    """As was announced before its owner released it; although it has no owner then."""
    nodes, busy = [node("b"), node("c")], wanted("busy", owner="b", cost_us=500)
    one = followed("f", 1)
    assert placed(nodes, [busy, one])[one.id] == "c"
    assert placed(nodes, [busy, one], level={(one.id, NodeId("b"))})[one.id] == "b"
