"""Versions of networks."""

from pipeline.ids import NetworkVersion
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import (
    ME,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    session,
)


def test_the_versions_of_a_network_are_read_together() -> None:
    """In the requested order, without those that do not exist."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.networks.deploy(network(2), network_version(2), (fragment(),), NetworkVersion(1))
    first, second = network_version(1), network_version(2)
    assert catalog.versions.of(TOLLS, range(4)) == (first, second)
    assert catalog.versions.of(TOLLS, (2, 1)) == (second, first)
    assert catalog.versions.get(TOLLS, NetworkVersion(2)) == second
    assert catalog.versions.get(TOLLS, NetworkVersion(3)) is None


def test_every_network_comes_with_its_deployed_version() -> None:
    """The version in the network's record."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    assert catalog.versions.deployed() == ()
    deployed(catalog)
    catalog.networks.deploy(network(2), network_version(2), (fragment(),), NetworkVersion(1))
    assert catalog.versions.deployed() == ((network(2), network_version(2)),)
