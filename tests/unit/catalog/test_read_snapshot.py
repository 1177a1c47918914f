"""Snapshot reads of the catalog: contents and numbers of requests."""

from collections.abc import Callable, Sequence

import pytest

from brokers.versioned_store import Versioned
from pipeline.catalog import backup
from pipeline.catalog.catalog import Catalog
from pipeline.catalog.records import DesiredState
from pipeline.catalog.snapshot import CatalogSnapshot, Deployed
from pipeline.ids import NetworkId
from pipeline.names import Znodes
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import (
    ME,
    MOVING,
    NODE1,
    NODE2,
    NOW,
    SPEED,
    TOLLS,
    CountingStore,
    deployed,
    filled,
    fragment,
    network,
    network_version,
    node,
    session,
)


def names(catalog: Catalog) -> list[NetworkId]:
    """All networks."""
    return [record.network for record in catalog.networks.of(ME)]


@pytest.mark.parametrize(("networks", "fragments"), [(1, 1), (1, 50), (10, 5)])
@pytest.mark.parametrize(
    ("read", "requests"),
    [
        (lambda catalog: catalog.snapshot(ME).fragments, 4),
        (lambda catalog: catalog.fragments.of(*names(catalog)), 4),
        (lambda catalog: catalog.owners.of(*names(catalog)), 4),
        (lambda catalog: catalog.statuses.of(*names(catalog)), 4),
        (lambda catalog: [*catalog.nodes.all(), *catalog.versions.deployed()], 7),
        (lambda catalog: backup.read(catalog.store, NOW).fragments, 12),
    ],
    ids=["snapshot", "fragments", "owners", "statuses", "nodes and versions", "backup"],
)
def test_the_number_of_requests_does_not_depend_on_the_catalogs_size(
    networks: int, fragments: int, read: Callable[[Catalog], Sequence[object]], requests: int
) -> None:
    """A snapshot of fifty fragments needs as many requests as of one."""
    store = CountingStore(filled(networks, fragments))
    found = read(Catalog(store, Znodes("")))
    assert len(found) >= networks
    assert store.requests == requests


def test_a_snapshot_has_every_fragment_with_its_owner_and_the_nodes_that_are_up() -> None:
    """Sorted by name; a fragment that was never claimed has no owner, an ended node is not up."""
    tree = MemoryTree()
    _, catalog = session(tree)
    other_store, other = session(tree)
    deployed(catalog, MOVING, SPEED)
    catalog.nodes.register(node(NODE1))
    other.nodes.register(node(NODE2))
    other.owners.claim(TOLLS, SPEED, node(NODE2), NOW)
    owner = catalog.owners.get(TOLLS, SPEED)
    fragments = Deployed(network(), fragment(SPEED), owner), Deployed(network(), fragment(MOVING))
    assert catalog.snapshot(ME) == CatalogSnapshot((node(NODE1), node(NODE2)), fragments)
    other_store.close()
    assert catalog.snapshot(ME) == CatalogSnapshot((node(NODE1),), fragments)


def test_an_empty_catalog_has_an_empty_snapshot() -> None:
    """If the catalog is set up."""
    _, catalog = session(MemoryTree())
    catalog.format.ensure(ME)
    assert catalog.snapshot(ME) == CatalogSnapshot((), ())


@pytest.mark.parametrize("request_number", [1, 2, 3, 4])
def test_a_change_during_the_read_raises_the_revision(request_number: int) -> None:
    """So a caller that has read the revision reads again; a removed fragment is left out."""
    tree = MemoryTree()
    _, other = session(tree)
    deployed(other, MOVING, SPEED)

    class MeanwhileStore(CountingStore):
        """A session with a concurrent change before one of its requests."""

        def _meanwhile(self) -> None:
            if self.requests == request_number:
                other.networks.deploy(
                    network(2), network_version(2), (fragment(MOVING, 2),), network().version
                )
                other.fragments.set_desired(TOLLS, DesiredState.PAUSED)

        def get_all(self, paths: Sequence[str]) -> tuple[Versioned | None, ...]:
            """The values, after the change."""
            self._meanwhile()
            return super().get_all(paths)

        def children_all(self, paths: Sequence[str]) -> tuple[tuple[str, ...], ...]:
            """The names, after the change."""
            self._meanwhile()
            return super().children_all(paths)

    store = MeanwhileStore(tree)
    catalog = Catalog(store, Znodes())
    before = catalog.networks.revision(ME)
    found = catalog.snapshot(ME)
    assert [one.id.fragment for one in found.fragments] == [MOVING]
    assert catalog.networks.revision(ME) == before + 2
    assert [one.running for one in catalog.snapshot(ME).fragments] == [False]
