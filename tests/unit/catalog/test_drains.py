"""Drained nodes."""

from pipeline.catalog.backup import read
from pipeline.ids import NodeId
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, NODE1, NODE2, NOW, deployed, node, session


def test_a_node_is_drained_until_that_is_undone() -> None:
    """Both are idempotent, and raise the revision so that nodes read the catalog."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    revision = catalog.networks.revision(ME)
    assert catalog.drains.of(ME) == {}
    assert not catalog.drains.undrain(ME, NODE1)
    assert catalog.drains.drain(ME, NODE2, NOW)
    assert catalog.drains.drain(ME, NODE1, NOW)
    assert not catalog.drains.drain(ME, NODE1, NOW)
    assert catalog.drains.of(ME) == {NODE1: NOW, NODE2: NOW}
    assert catalog.networks.revision(ME) == revision + 2
    assert catalog.drains.undrain(ME, NODE1)
    assert catalog.drains.of(ME) == {NODE2: NOW}
    assert catalog.networks.revision(ME) == revision + 3


def test_a_snapshot_has_the_drained_nodes() -> None:
    """Also those that are not up: they claim nothing when they start, unless no other node may."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.nodes.register(node(NODE1))
    catalog.drains.drain(ME, NODE2, NOW)
    found = catalog.snapshot(ME)
    assert found.drained == {NODE2}
    assert [one.id.fragment for one in found.assigned_to(NODE1)] == ["moving"]
    catalog.nodes.register(node(NODE2))
    assert catalog.snapshot(ME).assigned_to(NODE2) == ()
    catalog.drains.undrain(ME, NODE2)
    catalog.drains.drain(ME, NODE1, NOW)
    assert catalog.snapshot(ME).assigned_to(NODE1) == ()
    catalog.drains.drain(ME, NODE2, NOW)
    found = catalog.snapshot(ME)
    assert sorted(len(found.assigned_to(name)) for name in (NODE1, NODE2)) == [0, 1]


def test_a_backup_does_not_contain_them() -> None:
    """It is about running nodes, as owners are."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    before = set(read(store, NOW).entries)
    catalog.drains.drain(ME, NodeId("n"), NOW)
    assert set(read(store, NOW).entries) == before
