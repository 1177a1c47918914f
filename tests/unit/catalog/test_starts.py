"""Start records: written by a fragment's owner only, and removed with the fragment."""

import pytest

from pipeline.catalog.catalog import Catalog
from pipeline.catalog.snapshot import VersionId
from pipeline.errors import FencedError, RetryError
from pipeline.ids import Epoch, NetworkLife, NetworkVersion
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import (
    LIFE,
    MOVING,
    NOW,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    node,
    session,
)


@pytest.fixture
def catalog() -> Catalog:
    """A catalog with two fragments that have never run."""
    _, found = session(MemoryTree())
    deployed(found, MOVING, SPEED)
    return found


def claimed(catalog: Catalog) -> Epoch:
    """Claim a fragment and return the epoch."""
    return catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch


def version(number: int, life: str = LIFE) -> VersionId:
    """A version of the network, in the life in which it is deployed."""
    return VersionId(TOLLS, NetworkLife(life), NetworkVersion(number))


def test_a_claim_alone_is_not_recorded_as_a_start(catalog: Catalog) -> None:
    """A node that is killed before its first marker has not run the fragment."""
    epoch = claimed(catalog)
    assert not catalog.starts.recorded(TOLLS, MOVING)
    catalog.starts.record(TOLLS, MOVING, epoch)
    assert catalog.starts.recorded(TOLLS, MOVING)
    assert not catalog.starts.recorded(TOLLS, SPEED)
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    assert catalog.starts.recorded(TOLLS, MOVING)


def test_a_start_is_not_recorded_without_ownership(catalog: Catalog) -> None:
    """The fragment has no owner, or a later epoch owns it."""
    with pytest.raises(FencedError):
        catalog.starts.record(TOLLS, MOVING, Epoch(1))
    old = claimed(catalog)
    claimed(catalog)
    with pytest.raises(FencedError, match="epoch 1 does not own it any more"):
        catalog.starts.record(TOLLS, MOVING, old)
    assert not catalog.starts.recorded(TOLLS, MOVING)


def test_a_deploy_of_another_version_changes_nothing(catalog: Catalog) -> None:
    """The fragment's markers still exist."""
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    records = (fragment(version=2, digest="d2"),)
    catalog.networks.deploy(network(2), network_version(2), records, NetworkVersion(1))
    assert catalog.starts.recorded(TOLLS, MOVING)


def test_an_outdated_lane_does_not_start(catalog: Catalog) -> None:
    """Another epoch owns the fragment, its version or life has changed, or it was removed."""
    first = claimed(catalog)
    with pytest.raises(FencedError):
        catalog.starts.check(TOLLS, MOVING, Epoch(first + 1), version(1))
    epoch = claimed(catalog)
    catalog.starts.check(TOLLS, MOVING, epoch, version(1))
    with pytest.raises(FencedError, match="epoch 1 does not own it any more"):
        catalog.starts.check(TOLLS, MOVING, first, version(1))
    records = (fragment(version=2, digest="d2"),)
    catalog.networks.deploy(network(2), network_version(2), records, NetworkVersion(1))
    with pytest.raises(RetryError, match="deployed again before it started"):
        catalog.starts.check(TOLLS, MOVING, epoch, version(1))
    catalog.starts.check(TOLLS, MOVING, epoch, version(2))
    with pytest.raises(RetryError, match="deployed again before it started"):
        catalog.starts.check(TOLLS, MOVING, epoch, version(2, "another"))
    catalog.networks.remove(TOLLS)
    with pytest.raises(FencedError):
        catalog.starts.check(TOLLS, MOVING, epoch, version(2))


def test_a_start_record_is_removed_with_the_network(catalog: Catalog) -> None:
    """A network deployed again has no starts; an owner in its earlier life cannot record any."""
    epoch = claimed(catalog)
    catalog.starts.record(TOLLS, MOVING, epoch)
    assert catalog.networks.remove(TOLLS)
    deployed(catalog, MOVING)
    assert not catalog.starts.recorded(TOLLS, MOVING)
    claimed(catalog)
    with pytest.raises(FencedError):
        catalog.starts.record(TOLLS, MOVING, epoch)


def test_a_start_record_is_removed_with_a_fragment_that_a_deploy_removes(catalog: Catalog) -> None:
    """A later fragment of the same name is another fragment."""
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    catalog.networks.deploy(network(2), network_version(2), (fragment(SPEED),), NetworkVersion(1))
    assert not catalog.starts.recorded(TOLLS, MOVING)
    assert catalog.fragments.get(TOLLS, MOVING) is None
