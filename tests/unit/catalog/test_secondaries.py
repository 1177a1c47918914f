"""Secondaries of fragments."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.records import FragmentRecord, NodeRecord
from pipeline.catalog.secondaries import secondaries
from pipeline.ids import FragmentName, NodeId
from tests.unit.catalog.support import fragment
from tests.unit.catalog.test_placing import node

NODES = [node(name) for name in "abcde"]


def followed(name: str, by: int, nodes: str = "") -> FragmentRecord:
    """A fragment that so many nodes are to follow."""
    return replace(fragment(FragmentName(name)), active_standbys=by, nodes=nodes)


def of(record: FragmentRecord, owner: str, nodes: list[NodeRecord]) -> list[str]:
    """Its secondaries, by name."""
    return list(map(str, secondaries(record, NodeId(owner), nodes, frozenset())))


@given(st.integers(0, 9_999), st.integers(1, 3), st.sampled_from("abcde"))
def test_a_node_that_comes_or_goes_changes_only_its_own_part(
    number: int, by: int, other: str
) -> None:
    """The others keep what they follow; the owner follows nothing of its own."""
    record = followed(f"f{number}", by)
    before = of(record, "a", NODES)
    assert len(before) == by
    assert "a" not in before
    left = of(record, "a", [one for one in NODES if one.node != other])
    assert [name for name in before if name != other] == left[: len(before) - (other in before)]


@given(st.integers(0, 9_999), st.sampled_from("abcde"))
def test_the_first_secondary_of_a_lost_owner_is_the_first_of_all(number: int, owner: str) -> None:
    """So its fragment goes where a follower is, whoever computes it."""
    record, left = followed(f"f{number}", 1), [one for one in NODES if one.node != owner]
    assert of(record, owner, NODES) == of(record, "", left)


def test_secondaries_are_spread_by_capacity() -> None:
    """One without capacity is the last one."""
    nodes = [node("a"), node("b", capacity=300), node("c", capacity=0)]
    found = Counter(of(followed(f"f{n}", 1), "", nodes)[0] for n in range(400))
    assert 60 < found["a"] < 140
    assert 260 < found["b"] < 340
    assert of(followed("f", 3), "", nodes)[-1] == "c"


def test_only_nodes_that_may_run_a_fragment_follow_it() -> None:
    """By their labels; and none that is drained. Then there are fewer."""
    nodes = [node("a", "x"), node("b", "y"), node("c", "y")]
    record = followed("f", 2, nodes="zone=y")
    assert sorted(of(record, "a", nodes)) == ["b", "c"]
    assert of(record, "b", nodes) == ["c"]
    assert secondaries(record, NodeId("b"), nodes, {NodeId("c")}) == ()
