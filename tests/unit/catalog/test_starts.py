"""That a fragment has run is kept until it is removed, and only its owner says so."""

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
    """With two fragments that nobody has run."""
    _, found = session(MemoryTree())
    deployed(found, MOVING, SPEED)
    return found


def claimed(catalog: Catalog) -> Epoch:
    """The epoch of a claim."""
    return catalog.owners.claim(TOLLS, MOVING, node(), NOW)


def version(number: int, life: str = LIFE) -> VersionId:
    """A version of the network, in the life that it is deployed in."""
    return VersionId(TOLLS, NetworkLife(life), NetworkVersion(number))


def test_a_claim_alone_is_no_start(catalog: Catalog) -> None:
    """A node that is killed before its first marker has not run the fragment."""
    epoch = claimed(catalog)
    assert not catalog.starts.recorded(TOLLS, MOVING)
    catalog.starts.record(TOLLS, MOVING, epoch)
    assert catalog.starts.recorded(TOLLS, MOVING)
    assert not catalog.starts.recorded(TOLLS, SPEED)
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    assert catalog.starts.recorded(TOLLS, MOVING)


def test_who_does_not_own_it_records_nothing(catalog: Catalog) -> None:
    """Nobody, or a later epoch does."""
    with pytest.raises(FencedError):
        catalog.starts.record(TOLLS, MOVING, Epoch(1))
    old = claimed(catalog)
    claimed(catalog)
    with pytest.raises(FencedError, match="epoch 1 does not own it any more"):
        catalog.starts.record(TOLLS, MOVING, old)
    assert not catalog.starts.recorded(TOLLS, MOVING)


def test_a_deploy_of_another_version_changes_nothing(catalog: Catalog) -> None:
    """What the fragment has written is still there."""
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    records = (fragment(version=2, digest="d2"),)
    catalog.networks.deploy(network(2), network_version(2), records, NetworkVersion(1))
    assert catalog.starts.recorded(TOLLS, MOVING)


def test_a_lane_that_is_not_wanted_any_more_does_not_start(catalog: Catalog) -> None:
    """Another epoch owns it, another version or life of the network is deployed, or it is gone."""
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


def test_it_goes_with_the_fragment(catalog: Catalog) -> None:
    """A network that is deployed again starts anew; an owner of the one before says nothing."""
    epoch = claimed(catalog)
    catalog.starts.record(TOLLS, MOVING, epoch)
    assert catalog.networks.remove(TOLLS)
    deployed(catalog, MOVING)
    assert not catalog.starts.recorded(TOLLS, MOVING)
    claimed(catalog)
    with pytest.raises(FencedError):
        catalog.starts.record(TOLLS, MOVING, epoch)


def test_it_goes_with_a_fragment_that_a_deploy_removes(catalog: Catalog) -> None:
    """What its name means next is another fragment."""
    catalog.starts.record(TOLLS, MOVING, claimed(catalog))
    catalog.networks.deploy(network(2), network_version(2), (fragment(SPEED),), NetworkVersion(1))
    assert not catalog.starts.recorded(TOLLS, MOVING)
    assert catalog.fragments.get(TOLLS, MOVING) is None
