"""Deploying, changing and removing networks in the catalog."""

from dataclasses import replace

import pytest

from brokers.versioned_store import Create, Operation
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.networks import VERSIONS_PER_STEP_MAX
from pipeline.catalog.records import DesiredState
from pipeline.catalog.retrying import ATTEMPTS_MAX
from pipeline.errors import BrokenInvariantError, RefusedError, RetryError, UnavailableError
from pipeline.ids import FragmentName, NetworkId, NetworkLife, NetworkName, NetworkVersion
from pipeline.names import Znodes
from tests.memory_store import MemoryStore, MemoryTree
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NOW,
    SPEED,
    TOLLS,
    deployed,
    fragment,
    network,
    network_version,
    node,
    report,
    session,
)


class RacingStore(MemoryStore):
    """A session with a concurrent change just before each of its steps."""

    def __init__(self, tree: MemoryTree, races: int, other: Catalog) -> None:
        super().__init__(tree)
        self.races = races
        self.other = other

    def apply(self, operations: tuple[Operation, ...]) -> None:
        """Apply the step, after a concurrent change of the revision."""
        if self.races > 0:
            self.races -= 1
            before = self.other.fragments.of(TOLLS)[0].desired
            other = DesiredState.STOPPED if before is DesiredState.RUNNING else DesiredState.RUNNING
            self.other.fragments.set_desired(TOLLS, other)
        super().apply(operations)


def test_a_fresh_catalog_is_empty() -> None:
    """Reads return nothing and do not fail."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    assert catalog.networks.of(ME) == ()
    assert catalog.fragments.of(TOLLS) == ()
    assert catalog.statuses.of(TOLLS) == ()
    assert catalog.networks.get(TOLLS) is None
    assert catalog.versions.get(TOLLS, NetworkVersion(1)) is None
    assert catalog.networks.revision(ME) == 0
    assert catalog.networks.remove(TOLLS) is False


def test_setting_up_twice_changes_nothing() -> None:
    """Every process checks the format; only the first one writes."""
    tree = MemoryTree()
    _, first = session(tree)
    deployed(first)
    _, second = session(tree)
    second.format.ensure(ME)
    assert second.networks.of(ME) == (network(),)


def test_a_catalog_of_a_newer_format_is_refused() -> None:
    """An old version of Medusa does not change the catalog of a newer one."""
    store, catalog = session(MemoryTree())
    store.make_parents("/medusa")
    store.apply((Create("/medusa/format", b'{"format": 2}'),))
    with pytest.raises(RefusedError, match="format 2"):
        catalog.format.ensure(ME)


def test_deploy_without_a_set_up_catalog_is_refused() -> None:
    """The error describes the cause, not a missing path."""
    _, catalog = session(MemoryTree())
    with pytest.raises(RefusedError, match="not set up"):
        catalog.networks.deploy(network(), network_version(), (fragment(),), None)


def test_an_empty_root_puts_the_catalog_at_the_top() -> None:
    """In its own chroot the catalog needs no folder."""
    store = MemoryStore(MemoryTree())
    catalog = Catalog(store, Znodes(""))
    deployed(catalog)
    assert store.children("/participants") == (ME,)
    assert catalog.networks.of(ME) == (network(),)


def test_deployed_records_can_be_read() -> None:
    """A deploy stores the network, its version and its fragments, in one revision."""
    _, catalog = session(MemoryTree())
    deployed(catalog, SPEED, MOVING)
    assert catalog.networks.of(ME) == (network(),)
    assert catalog.versions.get(TOLLS, NetworkVersion(1)) == network_version()
    assert catalog.fragments.of(TOLLS) == (fragment(SPEED), fragment(MOVING))
    assert catalog.fragments.get(TOLLS, MOVING) == fragment(MOVING)
    assert catalog.networks.revision(ME) == 1


def test_a_second_deploy_changes_adds_and_removes_fragments() -> None:
    """After a deploy the fragments are those of the plan, and old versions can still be read."""
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    catalog.owners.claim(TOLLS, SPEED, node(), NOW)
    catalog.statuses.report(report(1, name=SPEED))
    stopped = FragmentName("stopped")
    plan = (fragment(MOVING, 2, "d2"), fragment(stopped, 2))
    catalog.networks.deploy(network(2), network_version(2), plan, NetworkVersion(1))
    assert catalog.fragments.of(TOLLS) == plan
    assert catalog.networks.get(TOLLS) == network(2)
    assert catalog.versions.get(TOLLS, NetworkVersion(1)) == network_version(1)
    assert catalog.owners.get(TOLLS, SPEED) is None
    assert catalog.networks.revision(ME) == 2


def test_an_unchanged_fragment_keeps_its_owner_and_its_znode() -> None:
    """A deploy does not touch fragments whose record is the same."""
    store, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    epoch = catalog.owners.claim(TOLLS, MOVING, node(), NOW).epoch
    before = store.get(Znodes().fragment(TOLLS, MOVING))
    plan = (fragment(MOVING), fragment(SPEED, 2, "d2"))
    catalog.networks.deploy(network(2), network_version(2), plan, NetworkVersion(1))
    owner = catalog.owners.get(TOLLS, MOVING)
    assert owner is not None
    assert owner.epoch == epoch
    assert store.get(Znodes().fragment(TOLLS, MOVING)) == before


@pytest.mark.parametrize("expected", [None, NetworkVersion(2)])
def test_a_plan_against_another_version_is_not_deployed(expected: NetworkVersion | None) -> None:
    """The error is retryable; nothing is changed."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    with pytest.raises(RetryError, match="is at version 1"):
        catalog.networks.deploy(network(3), network_version(3), (), expected)
    assert catalog.networks.of(ME) == (network(),)
    assert catalog.networks.revision(ME) == 1


def test_a_plan_against_a_removed_network_is_not_deployed() -> None:
    """A deploy of a change does not create a network that was removed concurrently."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.networks.remove(TOLLS)
    with pytest.raises(RetryError, match="is not deployed"):
        catalog.networks.deploy(network(2), network_version(2), (fragment(),), NetworkVersion(1))


def test_a_plan_against_an_earlier_life_is_not_deployed() -> None:
    """The network was destroyed and deployed again since, and has the same version."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.networks.remove(TOLLS)
    again = network(life=NetworkLife("another"))
    catalog.networks.deploy(again, network_version(), (fragment(),), None)
    with pytest.raises(RetryError, match="destroyed and deployed again"):
        catalog.networks.deploy(network(2), network_version(2), (fragment(),), NetworkVersion(1))
    assert catalog.networks.get(TOLLS) == again


def test_a_version_that_the_network_does_not_name_is_a_bug() -> None:
    """The two records of a deploy must agree."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    with pytest.raises(BrokenInvariantError):
        catalog.networks.deploy(network(1), network_version(2), (fragment(),), None)


def test_a_deploy_succeeds_when_another_network_changes_concurrently() -> None:
    """A lost compare-and-set of the revision alone is retried internally."""
    tree = MemoryTree()
    _, other = session(tree)
    deployed(other)
    catalog = Catalog(RacingStore(tree, ATTEMPTS_MAX - 1, other), Znodes())
    name = NetworkId(ME, NetworkName("traffic"))
    record = replace(network(), network=name)
    version = replace(network_version(), network=name)
    catalog.networks.deploy(record, version, (replace(fragment(), network=name),), None)
    assert catalog.networks.get(name) == record
    assert catalog.networks.revision(ME) == 1 + (ATTEMPTS_MAX - 1) + 1


def test_a_deploy_fails_after_many_lost_races() -> None:
    """The number of retries is limited; the hint is to run it again."""
    tree = MemoryTree()
    _, other = session(tree)
    deployed(other)
    catalog = Catalog(RacingStore(tree, 1_000, other), Znodes())
    name = NetworkId(ME, NetworkName("traffic"))
    record, version = replace(network(), network=name), replace(network_version(), network=name)
    with pytest.raises(RetryError, match=f"{ATTEMPTS_MAX} times"):
        catalog.networks.deploy(record, version, (), None)
    assert catalog.networks.get(name) is None


def test_a_network_that_is_too_large_is_refused_before_it_is_sent() -> None:
    """Exceeding the size limit of a step is an error of its own, not a lost connection."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    huge = replace(network_version(), document="x" * 1_000_000)
    with pytest.raises(RefusedError, match="bytes in one step"):
        catalog.networks.deploy(network(), huge, (fragment(),), None)
    assert catalog.networks.of(ME) == ()


def test_removing_a_network_leaves_only_its_epoch_counters() -> None:
    """All its records are removed, in one revision."""
    store, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    catalog.owners.claim(TOLLS, MOVING, node(), NOW)
    catalog.statuses.report(report(1))
    assert catalog.networks.remove(TOLLS) is True
    assert catalog.networks.of(ME) == ()
    assert store.children(Znodes().networks(ME)) == ()
    assert store.children(Znodes().epochs(ME)) == ("tolls.moving",)
    assert catalog.networks.revision(ME) == 2


def test_a_long_history_is_removed_in_bounded_steps() -> None:
    """No step is larger than its limit, for any number of versions."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    last = 2 * VERSIONS_PER_STEP_MAX + 5
    for number in range(2, last + 1):
        path = Znodes().version(TOLLS, number)
        store.apply((Create(path, b"{}"),))
    assert catalog.networks.remove(TOLLS) is True
    assert store.children(Znodes().networks(ME)) == ()


def test_a_suspended_session_rejects_requests() -> None:
    """While the state of the session is unknown, nothing is read or written."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    store.suspend()
    assert catalog.store.suspended
    with pytest.raises(UnavailableError):
        catalog.networks.revision(ME)
    store.resume()
    assert not catalog.store.suspended
    assert catalog.networks.revision(ME) == 1
