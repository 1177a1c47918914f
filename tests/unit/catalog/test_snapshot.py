"""Assignment of a snapshot's fragments to nodes."""

from dataclasses import replace

from pipeline.catalog.records import (
    DesiredState,
    FragmentRecord,
    NetworkRecord,
    NodeRecord,
    OwnerRecord,
    Standby,
)
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed, Leaving
from pipeline.ids import (
    Epoch,
    FragmentName,
    Millis,
    NetworkId,
    NetworkLife,
    NetworkName,
    NetworkVersion,
    NodeId,
    ParticipantId,
)
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.priority import Priority

ME = ParticipantId("me")
HERE, THERE = NodeId("here"), NodeId("there")
ONE, NOW = NetworkVersion(1), Millis(0)


def _fragment(name: str, owner: NodeId | None) -> Deployed:
    network = NetworkId(ME, NetworkName("net"))
    of = network, FragmentName(name), ONE
    record = FragmentRecord(*of, DesiredState.RUNNING, "d", (), None, (), None)
    claim = None if owner is None else OwnerRecord(owner, ME, Epoch(1), NOW, NOW)
    life = NetworkLife("one")
    return Deployed(NetworkRecord(network, ONE, life, (), ()), record, claim)


def _node(name: NodeId) -> NodeRecord:
    return NodeRecord(name, ME, "host", 1, NOW, "0", reads=1)


FRAGMENTS = (
    _fragment("free", None),
    _fragment("mine", HERE),
    _fragment("theirs", THERE),
)


def _names(fragments: tuple[Deployed, ...]) -> list[str]:
    return [one.id.fragment for one in fragments]


def test_a_node_runs_its_own_fragments_and_those_without_a_living_owner() -> None:
    """Fragments of a node that is not up count as unowned."""
    both = CatalogSnapshot((_node(HERE), _node(THERE)), FRAGMENTS)
    assert _names(both.assigned_to(HERE)) == ["free", "mine"]
    assert _names(both.assigned_to(THERE)) == ["theirs"]
    alone = CatalogSnapshot((_node(HERE),), FRAGMENTS)
    assert _names(alone.assigned_to(HERE)) == ["free", "mine", "theirs"]


def test_a_node_that_is_not_up_keeps_what_it_owns() -> None:
    """Its session may have been lost; it claims nothing."""
    alone = CatalogSnapshot((), FRAGMENTS)
    assert _names(alone.assigned_to(HERE)) == ["mine"]
    assert alone.leaving(HERE) == {}


def test_a_node_rehearses_only_what_it_may_run() -> None:
    """By its labels."""
    theirs = replace(FRAGMENTS[2], record=replace(FRAGMENTS[2].record, nodes="zone=b"))
    there = replace(_node(THERE), labels=(("zone", "b"),))
    found = CatalogSnapshot((_node(HERE), there), (theirs,))
    assert found.run_elsewhere(HERE) == ()
    both = CatalogSnapshot((replace(there, node=HERE), there), (theirs,))
    assert both.run_elsewhere(HERE) == (theirs,)


def test_a_fragment_leaves_a_node_that_may_not_run_it() -> None:
    """As soon as one is up that may, and claims it when it is released; the others stay."""
    moving = replace(FRAGMENTS[1], record=replace(FRAGMENTS[1].record, nodes="zone=b"))
    fragments = (FRAGMENTS[0], moving, FRAGMENTS[2])
    there = replace(_node(THERE), labels=(("zone", "b"),))
    found = CatalogSnapshot((_node(HERE), there), fragments)
    assert moving.owner is not None
    assert found.leaving(HERE) == {moving.id: Leaving(moving.owner, THERE, moving.record)}
    assert found.leaving(THERE) == {}
    assert "mine" not in _names(found.assigned_to(HERE))
    assert "mine" not in _names(found.assigned_to(THERE))
    released = replace(found, fragments=(FRAGMENTS[0], replace(moving, owner=None)))
    assert "mine" in _names(released.assigned_to(THERE))
    without = CatalogSnapshot((_node(HERE), _node(THERE)), fragments)
    assert without.leaving(HERE) == {}
    assert "mine" in _names(without.assigned_to(HERE))


def test_fragments_that_run_elsewhere_have_another_living_owner() -> None:
    """And their desired state is running."""
    both = CatalogSnapshot((_node(HERE), _node(THERE)), FRAGMENTS)
    assert _names(both.run_elsewhere(HERE)) == ["theirs"]
    assert _names(CatalogSnapshot((_node(HERE),), FRAGMENTS).run_elsewhere(HERE)) == []
    theirs = FRAGMENTS[2]
    paused = replace(theirs, record=replace(theirs.record, desired=DesiredState.PAUSED))
    assert CatalogSnapshot((_node(THERE),), (paused,)).run_elsewhere(HERE) == ()


def _followed(owner: NodeId | None, by: int = 1) -> Deployed:
    one = _fragment("followed", owner)
    return replace(one, record=replace(one.record, active_standbys=by))


def test_a_secondary_follows_what_others_run() -> None:
    """Not what it runs itself; nor what should not run, or has no secondaries."""
    nodes = (_node(HERE), _node(THERE))
    found = CatalogSnapshot(nodes, (_followed(THERE), *FRAGMENTS))
    assert [(one.id.fragment, is_one) for one, is_one in found.standing_by(HERE)] == [
        ("followed", True)
    ]
    assert found.standing_by(THERE) == ()
    paused = replace(_followed(THERE).record, desired=DesiredState.PAUSED)
    at_rest = replace(_followed(THERE), record=paused)
    assert CatalogSnapshot(nodes, (at_rest,)).standing_by(HERE) == ()


def test_a_secondary_goes_on_until_it_has_claimed() -> None:
    """Its follower would be ended by the loss of the owner otherwise, before it is needed."""
    lost = CatalogSnapshot((_node(HERE),), (_followed(THERE),))
    assert [is_one for _, is_one in lost.standing_by(HERE)] == [False]
    assert _names(lost.assigned_to(HERE)) == ["followed"]
    claimed = CatalogSnapshot((_node(HERE),), (_followed(HERE),))
    assert claimed.standing_by(HERE) == ()


def test_no_follower_begins_while_another_node_takes_over() -> None:
    """It would take processor time from it."""
    third = NodeId("third")
    lost = CatalogSnapshot((_node(HERE), _node(third)), (_followed(THERE, 2),))
    assert [[begins for _, begins in lost.standing_by(node)] for node in (HERE, third)] == [
        [False],
        [False],
    ]
    back = CatalogSnapshot((*lost.nodes, _node(THERE)), lost.fragments)
    assert [[begins for _, begins in back.standing_by(node)] for node in (HERE, third)] == [
        [True],
        [True],
    ]


def test_a_suspected_node_counts_as_down() -> None:
    """Although it is up by the catalog."""
    nodes = (_node(HERE), _node(THERE))
    found = CatalogSnapshot(nodes, FRAGMENTS, suspected=frozenset({THERE}))
    assert found.alive == {HERE}
    assert _names(found.assigned_to(HERE)) == ["free", "mine", "theirs"]
    assert found.run_elsewhere(HERE) == ()


def test_a_level_secondary_comes_first() -> None:
    """By what it has reported itself."""
    third, name = NodeId("third"), _followed(THERE).id
    for level in (HERE, third):
        standby = Standby(name.network, name.fragment, FollowerPhase.LEVEL, "", NOW)
        building = replace(standby, phase=FollowerPhase.BUILDING)
        other = third if level == HERE else HERE
        found = CatalogSnapshot(
            (_node(HERE), _node(third)),
            (_followed(THERE, 2),),
            standbys={level: (standby,), other: (building,)},
        )
        assert _names(found.assigned_to(level)) == ["followed"]


def test_what_an_overdue_node_owns_any_node_claims() -> None:
    """The one that the placement names may not suspect it. Not one that is drained, or may not."""
    third = NodeId("third")
    nodes = (_node(HERE), _node(THERE), _node(third))
    suspected = frozenset({THERE})
    found = CatalogSnapshot(nodes, (_fragment("theirs", THERE),), suspected=suspected)
    assert sorted(len(found.assigned_to(node)) for node in (HERE, third)) == [0, 1]
    late = replace(found, overdue=suspected)
    assert [_names(late.assigned_to(node)) for node in (HERE, third)] == [["theirs"], ["theirs"]]
    assert late.assigned_to(THERE) == ()
    drained = replace(late, drained=frozenset({third}))
    assert drained.assigned_to(third) == ()
    last = replace(late, drained=frozenset({HERE, third}))
    assert [_names(last.assigned_to(node)) for node in (HERE, third)] == [["theirs"], ["theirs"]]


def test_a_fragment_without_a_working_owner_is_deserted() -> None:
    """As long as it should run: the catalog is read more often then."""
    nodes = (_node(HERE), _node(THERE))
    assert not CatalogSnapshot(nodes, FRAGMENTS[1:]).is_deserted
    assert CatalogSnapshot(nodes, FRAGMENTS).is_deserted
    assert CatalogSnapshot(nodes, FRAGMENTS[1:], suspected=frozenset({THERE})).is_deserted
    assert CatalogSnapshot(nodes[:1], FRAGMENTS[1:]).is_deserted
    paused = replace(FRAGMENTS[0].record, desired=DesiredState.PAUSED)
    at_rest = replace(FRAGMENTS[0], record=paused)
    assert not CatalogSnapshot(nodes, (at_rest,)).is_deserted


def _limited(name: NodeId) -> NodeRecord:
    return replace(_node(name), most_fragments=1)


def _urgent(one: Deployed) -> Deployed:
    return replace(one, record=replace(one.record, priority=Priority.HIGH))


def test_a_displaced_fragment_leaves_for_another_node_or_for_none() -> None:
    """The node that it was on runs the other one; nobody claims it before there is room."""
    free, mine, _ = FRAGMENTS
    assert mine.owner is not None
    found = CatalogSnapshot((_limited(HERE),), (_urgent(free), mine))
    assert _names(found.assigned_to(HERE)) == ["free"]
    assert found.leaving(HERE) == {mine.id: Leaving(mine.owner, None, mine.record)}
    released = replace(found, fragments=(_urgent(free), replace(mine, owner=None)))
    assert _names(released.assigned_to(HERE)) == ["free"]
    assert released.leaving(HERE) == {}
    both = replace(found, nodes=(_limited(HERE), _node(THERE)))
    assert both.leaving(HERE) == {}
    assert _names(both.assigned_to(THERE)) == ["free"]


def test_a_node_that_is_not_up_keeps_what_no_other_has_room_for() -> None:
    """By its own view: nobody claims it, so nothing would be won by an end of it."""
    _, mine, theirs = FRAGMENTS
    found = CatalogSnapshot((_limited(THERE),), (mine, theirs))
    assert found.placement.queued == {mine.id}
    assert _names(found.assigned_to(HERE)) == ["mine"]
    assert found.leaving(HERE) == {}
    assert _names(found.assigned_to(THERE)) == ["theirs"]


def test_a_queued_fragment_is_not_deserted() -> None:
    """Nobody has to hurry for it."""
    _, mine, theirs = FRAGMENTS
    found = CatalogSnapshot((_limited(HERE),), (mine, theirs))
    assert found.placement.queued == {theirs.id}
    assert not found.is_deserted
    assert replace(found, nodes=(_node(HERE),)).is_deserted


def test_a_queued_fragment_keeps_its_followers_and_gets_no_other() -> None:
    """It goes on with one of them when there is room."""
    _, mine, theirs = FRAGMENTS
    nodes = (_limited(HERE), _limited(THERE))
    for owner in (None, NodeId("gone")):
        found = CatalogSnapshot(nodes, (_followed(owner), mine, theirs))
        assert found.placement.queued == {_followed(None).id}
        assert found.secondaries() == {}
        for node in (HERE, THERE):
            assert [is_begun for _, is_begun in found.standing_by(node)] == [False]


def test_what_an_overdue_node_owns_a_full_node_does_not_claim() -> None:
    """One with room does."""
    third = NodeId("third")
    nodes = (_limited(HERE), _node(THERE), _node(third), _node(NodeId("fourth")))
    late = CatalogSnapshot(
        nodes,
        (FRAGMENTS[1], FRAGMENTS[2]),
        suspected=frozenset({THERE}),
        overdue=frozenset({THERE}),
    )
    assert _names(late.assigned_to(HERE)) == ["mine"]
    assert _names(late.assigned_to(third)) == ["theirs"]
    assert _names(late.assigned_to(NodeId("fourth"))) == ["theirs"]
