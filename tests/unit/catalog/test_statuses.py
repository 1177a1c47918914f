"""Statuses that owners report."""

import pytest

from pipeline.errors import FencedError
from pipeline.names import Znodes
from tests.memory_store import MemoryTree
from tests.unit.catalog.support import ME, MOVING, SPEED, TOLLS, deployed, report, session


def test_the_last_report_is_kept() -> None:
    """A status replaces the previous one; statuses are listed by fragment."""
    _, catalog = session(MemoryTree())
    deployed(catalog, MOVING, SPEED)
    catalog.statuses.report(report(1, 5))
    catalog.statuses.report(report(1, 9))
    assert catalog.statuses.get(TOLLS, MOVING) == report(1, 9)
    assert catalog.statuses.of(TOLLS) == (report(1, 9),)
    assert catalog.networks.revision(ME) == 1


def test_a_fenced_owner_cannot_report() -> None:
    """After a newer epoch has reported, a report of an older one raises `FencedError`."""
    _, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.statuses.report(report(2, 1))
    with pytest.raises(FencedError, match="epoch 2"):
        catalog.statuses.report(report(1, 100))
    assert catalog.statuses.get(TOLLS, MOVING) == report(2, 1)


def test_a_report_of_a_removed_fragment_is_dropped() -> None:
    """A node may report before it has read an undeploy."""
    store, catalog = session(MemoryTree())
    deployed(catalog)
    catalog.statuses.report(report(1))
    catalog.networks.remove(TOLLS)
    catalog.statuses.report(report(1))
    assert store.children(Znodes().networks(ME)) == ()
