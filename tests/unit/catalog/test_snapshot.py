"""Assignment of a snapshot's fragments to nodes."""

from dataclasses import replace

from pipeline.catalog.records import DesiredState, FragmentRecord, NetworkRecord, OwnerRecord
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
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


FRAGMENTS = (
    _fragment("free", None),
    _fragment("mine", HERE),
    _fragment("theirs", THERE),
)


def _names(fragments: tuple[Deployed, ...]) -> list[str]:
    return [one.id.fragment for one in fragments]


def test_a_node_runs_its_own_fragments_and_those_without_a_living_owner() -> None:
    """Fragments of a node that is not up count as unowned."""
    both = CatalogSnapshot(frozenset({HERE, THERE}), FRAGMENTS)
    assert _names(both.assigned_to(HERE)) == ["free", "mine"]
    alone = CatalogSnapshot(frozenset({HERE}), FRAGMENTS)
    assert _names(alone.assigned_to(HERE)) == ["free", "mine", "theirs"]


def test_fragments_that_run_elsewhere_have_another_living_owner() -> None:
    """And their desired state is running."""
    both = CatalogSnapshot(frozenset({HERE, THERE}), FRAGMENTS)
    assert _names(both.run_elsewhere(HERE)) == ["theirs"]
    assert _names(CatalogSnapshot(frozenset({HERE}), FRAGMENTS).run_elsewhere(HERE)) == []
    theirs = FRAGMENTS[2]
    paused = replace(theirs, record=replace(theirs.record, desired=DesiredState.PAUSED))
    assert CatalogSnapshot(frozenset({THERE}), (paused,)).run_elsewhere(HERE) == ()
