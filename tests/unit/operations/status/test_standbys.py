"""Secondaries of fragments as `status` shows them."""

from dataclasses import replace

from pipeline.catalog.records import OwnerRecord, Standby
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import Epoch, NodeId
from pipeline.lanes.follower_phases import FollowerPhase
from pipeline.operations.status.standbys import ObservedStandby, observed_standbys
from tests.unit.catalog.support import ME, MOVING, NODE1, NOW, SPEED, TOLLS, fragment, network, node


def test_each_secondary_has_what_it_has_reported() -> None:
    """Nothing, if it has not; what a node reports that is no secondary any more does not count."""
    record = replace(fragment(), active_standbys=2)
    owner = OwnerRecord(NODE1, ME, Epoch(1), NOW, NOW)
    alone = Deployed(network(), fragment(SPEED), owner)
    nodes = tuple(node(NodeId(name)) for name in (NODE1, "b", "c"))
    level = Standby(TOLLS, MOVING, FollowerPhase.LEVEL, "", NOW)
    other = Standby(TOLLS, SPEED, FollowerPhase.LEVEL, "", NOW)
    found = CatalogSnapshot(
        nodes,
        (Deployed(network(), record, owner), alone),
        standbys={NodeId("b"): (level, other), NODE1: (level,)},
    )
    seen = observed_standbys(found)
    assert set(seen) == {level.id}
    assert sorted(seen[level.id], key=lambda one: one.node) == [
        ObservedStandby(NodeId("b"), FollowerPhase.LEVEL, "", NOW),
        ObservedStandby(NodeId("c"), FollowerPhase.ABSENT),
    ]
